#pragma once

#include "program/program.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tenon {

/// No machine has more; sums of such numbers do not overflow.
inline constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 46;

/// What the shapes of a run's inputs decide about its program: symbols, shapes, places in the
/// arena, which steps run.
struct BoundShapes {
  /// The program must outlive it.
  explicit BoundShapes(const Program& program) : program_(program) {}

  std::vector<std::int64_t> symbols;
  /// by symbol: those of inputs; others as the run tells them
  std::vector<bool> is_known;
  /// by buffer, where the symbols in them are known
  std::vector<std::vector<std::int64_t>> shapes;
  std::vector<std::vector<std::int64_t>> output_shapes;
  /// by buffer: in the arena, or as the program says
  std::vector<std::uint64_t> offsets;
  /// of the arena
  std::uint64_t planned_bytes = 0;

  /// Throws Error, by name, axis and range, for a shape the program does not take.
  void bind(std::span<const std::vector<std::int64_t>> input_shapes);
  /// An extent that a step of the run told. Throws Error where it is none that the program takes.
  void set_symbol(std::uint32_t symbol, std::int64_t value);
  bool is_told(const Extent& extent) const;
  /// Computes the shape of a buffer anew. Asks that its symbols are known.
  void compute_shape(std::size_t buffer);
  /// Holds the symbols that are known to what all of the program asks of them; `step`: to what
  /// bodies ask in which it is.
  void check_symbols(std::optional<std::uint32_t> step = std::nullopt) const;
  bool runs(const Program::Step& step) const;
  std::uint64_t bytes_of(std::size_t buffer) const;
  std::vector<std::uint64_t> all_bytes() const;

 private:
  void read_symbols(std::span<const std::vector<std::int64_t>> input_shapes);
  void check_inputs(std::span<const std::vector<std::int64_t>> input_shapes);
  void place();

  const Program& program_;
};

}  // namespace tenon
