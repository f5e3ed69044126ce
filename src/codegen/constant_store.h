#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "codegen/nest_names.h"
#include "ir/constant.h"
#include "nests/packing.h"
#include "nests/winograd_weights.h"
#include "program/program.h"

namespace tenon::codegen {

using nests::Packing;
using nests::WinogradWeights;

/// The constants of a program that is being made: those of the graph, and the same in the orders and
/// forms in which kernels read them. Each form of each is there once, however many kernels want it.
class ConstantStore {
 public:
  explicit ConstantStore(Program& program) : program_(program) {}

  /// A constant of the graph, for which there is a buffer.
  void add(std::uint32_t buffer, const Constant& value);

  /// The buffer that holds the constant of `source` in another form.
  std::uint32_t packed(std::uint32_t source, const Packing& packing);
  std::uint32_t transformed(std::uint32_t source, const WinogradWeights& weights);

  /// A kernel reads the buffer, at places that data decides or at all of them. Other buffers than constants
  /// may be told of too.
  void note_use(std::uint32_t buffer, bool is_lookup);

  /// Gives those that steps read their places and writes them. Throws Error (OutOfMemory).
  void place();

 private:
  struct Entry {
    Constant value;
    std::optional<Packing> packing;
    std::optional<WinogradWeights> winograd;
  };
  std::uint32_t form_of(std::uint32_t source, const std::string& form, Entry entry, DType dtype, const Dims& dims);
  const Constant& value_of(std::uint32_t buffer) const;
  void write(std::uint32_t buffer, const Entry& entry, std::byte* target) const;
  Error no_memory() const;

  Program& program_;
  std::map<std::uint32_t, Entry> entries_;  // by buffer, which is the order they were met in
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> forms_;
  std::map<std::uint32_t, bool> is_looked_up_;  // by buffer: by every kernel that reads it
};

}  // namespace tenon::codegen
