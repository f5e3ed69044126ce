#pragma once

#include "host/executable.h"
#include "host/pool.h"
#include "ops/definition/evaluation.h"
#include "runtime/kernel_runner.h"

#include <optional>
#include <vector>

namespace tenon::inline host {

/// The values of a run by buffer: in the arena, among the constants, owned by the run, or a moving
/// window into another value during a loop.
class RunValues {
 public:
  RunValues(const HostExecutable& model, KernelRunner& runner)
      : model_(model), runner_(runner), values_(model.program().buffers.size()) {}

  /// Takes the inputs and allocates the outputs, except those that overwrite a state's input.
  /// Throws Error on a mismatch.
  void begin(const std::vector<Datum>& inputs);
  /// Returns the outputs and releases all other values.
  std::vector<Datum> end();
  /// Releases all values after an error.
  void clear();

  /// Returns the value of a buffer; tensors share the buffer's memory. Throws Error if it is
  /// undefined.
  Datum get(std::uint32_t buffer);
  /// Returns the tensor of a buffer, which must hold one.
  Tensor tensor(std::uint32_t buffer);
  /// Returns the value, copied if the buffer's memory may be overwritten.
  Datum kept(std::uint32_t buffer);
  /// Sets the value of a slot and the symbols that its shape defines; copies if the buffer is
  /// planned. Throws Error if the value does not match the program.
  void set(std::uint32_t buffer, Datum value);
  /// Allocates a value that the caller writes next, in place of `set`.
  std::byte* make_result(std::uint32_t buffer, const Shape& shape);
  /// Makes the slot a window to an address until the next change.
  void set_window(std::uint32_t slot, std::byte* address, Shape shape);
  void move_window(std::uint32_t slot, std::byte* address) { runner_.set_address(slot, address); }
  void release(std::uint32_t slot);
  /// Forgets the symbols that a step's body defined in its last execution.
  void begin_body(std::uint32_t step);

  /// Allocates a value outside of the arena.
  Tensor make_tensor(std::uint32_t buffer, const Shape& shape);
  /// Allocates scratch for a step.
  std::shared_ptr<const Memory> scratch(std::uint64_t bytes) {
    return pool_.take(bytes, "a step's own use");
  }
  /// Allocates a slot that kernels write next.
  void make_slot(std::uint32_t slot);
  /// Returns the address of a buffer, planned or allocated.
  std::byte* address(std::uint32_t buffer) const { return runner_.address(buffer); }
  /// Returns the shape of a buffer from its extents. Throws Error if they are unknown.
  const Shape& shape(std::uint32_t buffer);
  /// Checks the values that a segment reads against the shapes that its kernels expect.
  void check_reads(const Segment& segment);

  /// True if the buffer's memory will be overwritten while the value may still be in use.
  bool is_moving(std::uint32_t buffer) const;
  /// True if the value is statically a tensor of known rank.
  bool is_tensor(std::uint32_t buffer) const { return model_.dtypes()[buffer].has_value(); }
  /// True if the buffer's memory is planned before the run.
  bool is_planned(std::uint32_t buffer) const {
    return program().buffers[buffer].place != Program::BufferKind::Slot;
  }
  std::int64_t element_bytes(std::uint32_t buffer) const {
    return program().buffers[buffer].element_bytes;
  }
  /// Value of an empty stack, and the item type of an empty sequence.
  Tensor empty_tensor(std::uint32_t buffer) const;
  DType item_dtype(std::uint32_t buffer) const;

  std::uint64_t pool_bytes() const { return pool_.bytes(); }

 private:
  struct RunValue {
    std::optional<Datum> datum;
    bool is_window = false;
    Shape shape;  // shape of a window
  };
  const Program& program() const { return model_.program(); }
  Tensor view_of(std::uint32_t buffer, const Shape& shape);
  void check_shape(std::uint32_t buffer, const Shape& shape);

  const HostExecutable& model_;
  KernelRunner& runner_;
  std::vector<RunValue> values_;     // by buffer
  std::vector<Shape> input_shapes_;  // bound shapes
  MemoryPool pool_;
};

/// Copies tensors that overlap any of these byte ranges into memory of their own.
Datum detached(Datum value, const std::vector<std::span<const std::byte>>& spans);

}  // namespace tenon::inline host
