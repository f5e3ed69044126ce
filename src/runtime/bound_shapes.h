#pragma once

#include "program/program.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tenon::inline runtime {

/// More than any machine's memory; sums of such sizes do not overflow.
inline constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 46;

/// Values that the input shapes of a run determine: symbols, buffer shapes, arena offsets, and
/// which steps run.
struct BoundShapes {
  /// The program must outlive this object.
  explicit BoundShapes(const Program& program) : program_(program) {}

  std::vector<std::int64_t> symbols;
  /// By symbol: true for symbols of inputs, and for others once a step has defined them.
  std::vector<bool> is_known;
  /// By buffer, if its symbols are known and its extents are valid.
  std::vector<std::vector<std::int64_t>> shapes;
  std::vector<bool> has_shape;
  std::vector<std::vector<std::int64_t>> output_shapes;
  /// By buffer: offset in the arena, or the program's own value.
  std::vector<std::uint64_t> offsets;
  /// Planned size of the arena.
  std::uint64_t planned_bytes = 0;

  /// Throws Error, with name, axis and range, for a shape that the program does not accept.
  void bind(std::span<const std::vector<std::int64_t>> input_shapes);
  /// Records a symbol that a step computed. Throws Error if the program does not accept the value.
  void set_symbol(std::uint32_t symbol, std::int64_t value);
  bool is_resolved(const Extent& extent) const;
  /// Recomputes the shape of a buffer. Its symbols must be known. Extents that are negative or
  /// divided by zero, and sizes that overflow, are an Error if the run needs the buffer; otherwise
  /// it has no shape.
  void compute_shape(std::size_t buffer, bool is_needed = true);
  /// Evaluates one extent; the Error names the node that computes the buffer.
  std::int64_t extent_of(std::size_t buffer, std::size_t axis) const;
  /// Evaluates an extent of a step. Throws Error, naming the step's node, on overflow and division
  /// by zero.
  std::int64_t value_of(const Extent& extent, const Program::Step& step) const;
  /// Checks the known symbols against the program's conditions; with `step`, against those of the
  /// bodies that contain the step.
  void check_symbols(std::optional<std::uint32_t> step = std::nullopt) const;
  bool runs(const Program::Step& step) const;
  /// Returns 0 for a buffer without a shape.
  std::uint64_t bytes_of(std::size_t buffer) const;
  std::vector<std::uint64_t> all_bytes() const;

 private:
  void read_symbols(std::span<const std::vector<std::int64_t>> input_shapes);
  void check_inputs(std::span<const std::vector<std::int64_t>> input_shapes);
  void compute_shapes();
  void place();
  std::string place_of(std::size_t buffer) const;

  const Program& program_;
};

}  // namespace tenon::inline runtime
