#pragma once

#include "host/executable.h"
#include "host/pool.h"
#include "ir/state_ports.h"
#include "ops/evaluation.h"
#include "runtime/kernel_runner.h"

#include <optional>
#include <vector>

namespace tenon {

/// The values of a run by buffer, wherever they are: in the arena, among the constants, held as
/// they were made, or a part of another value that moves from trip to trip.
class RunValues {
 public:
  RunValues(const HostExecutable& model, KernelRunner& runner)
      : model_(model), runner_(runner), held_(model.program().buffers.size()) {}

  /// Outputs that take the memory of inputs from the next run on.
  void overwrite(std::vector<StatePorts> ports) { overwritten_ = std::move(ports); }
  /// Takes the inputs and makes room for the outputs. Throws Error where one does not fit.
  void begin(const std::vector<Datum>& inputs);
  /// The outputs; everything else is let go.
  std::vector<Datum> end();
  /// The same after an error.
  void clear();

  /// The value of a buffer; a tensor shares its memory with it. Throws Error if it is not there
  /// yet.
  Datum get(std::uint32_t buffer);
  /// The same, asks for a tensor.
  Tensor tensor(std::uint32_t buffer);
  /// The same with memory of its own where the buffer's may come to hold something else.
  Datum kept(std::uint32_t buffer);
  /// Gives a slot its value and tells the extents that it tells; copies to other places. Throws
  /// Error where the value is not what the program takes it for.
  void set(std::uint32_t buffer, Datum value);
  /// Where a value of that shape goes that is about to be written, as `set` would take it.
  std::byte* make_result(std::uint32_t buffer, const Shape& shape);
  /// The slot is what lies at an address, for now.
  void set_window(std::uint32_t slot, std::byte* address, Shape shape);
  void move_window(std::uint32_t slot, std::byte* address) { runner_.set_address(slot, address); }
  void release(std::uint32_t slot);
  /// Forgets the extents that a step's body told when it last ran.
  void begin_body(std::uint32_t step);

  /// Memory for a value of that shape, outside of the arena.
  Tensor make_tensor(std::uint32_t buffer, const Shape& shape);
  /// Memory that a step works in.
  std::shared_ptr<const Memory> scratch(std::uint64_t bytes) {
    return pool_.take(bytes, "a step's own use");
  }
  /// Room for a slot that kernels are about to write.
  void make_slot(std::uint32_t slot);
  /// Where the bytes of a buffer that is no slot lie, or those that were made for it.
  std::byte* address(std::uint32_t buffer) const { return runner_.address(buffer); }
  /// The shape that a buffer has by its extents. Throws Error where these are not known.
  const Shape& shape(std::uint32_t buffer);
  /// Holds the values that a segment reads to the shapes that its kernels take them for.
  void check_reads(const Segment& segment);

  /// Whether the buffer's memory will hold something else while the value may still be read.
  bool is_moving(std::uint32_t buffer) const;
  /// Whether it is known to be a tensor of some rank.
  bool is_tensor(std::uint32_t buffer) const { return model_.dtypes()[buffer].has_value(); }
  /// Whether the buffer has a place that was laid out before the run.
  bool is_planned(std::uint32_t buffer) const {
    return program().buffers[buffer].place != Program::Place::Slot;
  }
  std::int64_t element_bytes(std::uint32_t buffer) const {
    return program().buffers[buffer].element_bytes;
  }
  /// A value of a stack of nothing, and what the items of an empty sequence would be.
  Tensor empty_tensor(std::uint32_t buffer) const;
  DType item_dtype(std::uint32_t buffer) const;

  std::uint64_t pool_bytes() const { return pool_.bytes(); }

 private:
  struct Held {
    std::optional<Datum> datum;
    bool is_window = false;
    Shape shape;  // of a window
  };
  const Program& program() const { return model_.program(); }
  Tensor view_of(std::uint32_t buffer, const Shape& shape);
  void check_shape(std::uint32_t buffer, const Shape& shape);

  const HostExecutable& model_;
  KernelRunner& runner_;
  std::vector<Held> held_;           // by buffer
  std::vector<Shape> input_shapes_;  // that are bound
  std::vector<StatePorts> overwritten_;
  Pool pool_;
};

/// Tensors in a value that lie inside one of these spans of bytes get memory of their own.
Datum detached(Datum value, const std::vector<std::span<const std::byte>>& spans);

}  // namespace tenon
