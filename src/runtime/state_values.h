#pragma once

#include "program/program.h"
#include "runtime/state_memory.h"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace tenon::inline runtime {

class Executable;

/// Values of the states of one executor. Copies of a value share its memory until one of them is
/// written.
class StateValues {
 public:
  struct Value {
    std::vector<std::int64_t> shape;
    /// Null before the first run, unless the state was written.
    std::shared_ptr<std::byte> memory;
    std::uint64_t bytes = 0;
  };

  explicit StateValues(std::shared_ptr<const Executable> model);

  std::size_t count() const { return slots_.size(); }
  /// Throws Error (Usage) for an unknown name.
  std::size_t find(std::string_view name) const;
  const Program::State& described(std::size_t state) const;
  const Program::Buffer& port(std::size_t state) const;

  const Value& value(std::size_t state) const { return slots_[state].now; }
  /// The value before the last run; without memory if that run overwrote it.
  const Value& previous(std::size_t state) const;
  /// Copies from host memory, or from this memory.
  void write(std::size_t state, std::vector<std::int64_t> shape, const void* data);
  /// Keeps the value in this memory from now on: every run leaves it there.
  void bind(std::size_t state, std::vector<std::int64_t> shape, std::shared_ptr<std::byte> memory);
  void read(const Value& value, void* to) const;
  /// Gives a state without a value its initial one; `shape` is that of zeros.
  void start(std::size_t state, const std::vector<std::int64_t>& shape);
  void reset();
  /// Takes the values of another executor, of a program with equal states.
  void share(const StateValues& from);
  const StateMemory& memory() const { return *memory_; }
  /// Bytes of the values, and of the second buffers of those that are not updated in place.
  std::uint64_t bytes() const;
  std::uint64_t second_bytes() const;

  /// Makes the memory of a value that the next run may overwrite this executor's own.
  void own(std::size_t state);
  /// Returns the memory for the next value: that of the current one if it may be overwritten and
  /// the shape is the same.
  std::byte* next(std::size_t state, const std::vector<std::int64_t>& shape, std::uint64_t bytes);
  /// Replaces the value after a run: by the memory that `next` returned, or by that of a result.
  void advance(std::size_t state, const std::vector<std::int64_t>& shape);
  void advance(std::size_t state, Value result);

 private:
  struct Slot {
    Value now, other;  // `other`: the previous value or the next one, if double-buffered
    bool is_bound = false, is_in_place = false, has_previous = false;
  };
  std::uint64_t bytes_of(std::size_t state, const std::vector<std::int64_t>& shape) const;
  Value own_copy(const Value& value) const;

  std::shared_ptr<const Executable> model_;
  std::shared_ptr<const StateMemory> memory_;
  std::vector<Slot> slots_;
};

}  // namespace tenon::inline runtime
