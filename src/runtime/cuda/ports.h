#pragma once

#include "runtime/bound_shapes.h"
#include "runtime/cuda/staging.h"
#include "runtime/device.h"
#include "runtime/segments.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tenon::inline runtime::cuda {

/// Inputs and outputs of a segment: their device addresses and their copies. Ports are numbered
/// together, inputs first. Pageable memory of the caller is staged through pinned memory, pinned
/// memory is copied directly, and device memory is used in place.
class PortBuffers {
 public:
  PortBuffers() = default;
  PortBuffers(const PortBuffers&) = delete;
  ~PortBuffers();

  /// Allocates device memory for the ports, except those of states: runs give them memory of the
  /// device. Throws Error (OutOfMemory).
  void place(const BoundShapes& shapes, const Segment& segment, const Program& program);
  std::size_t input_count() const { return inputs_.size(); }
  Address address(std::size_t port) const { return at(port).address; }
  std::vector<Address> addresses() const;

  /// Inspects the caller's pointers for a run. Device memory with matching alignment is used in
  /// place, ordered after the work on the caller's default stream, as is the memory of states.
  /// Returns true if any address changed.
  bool observe(std::span<const void* const> inputs, std::span<void* const> outputs, Stream steps);
  /// Starts copying the inputs. On return, pageable inputs may be overwritten.
  void begin_inputs(std::span<const void* const> inputs, Stream steps);
  /// Starts copying the outputs and the kernels' error report, within the limits of pinned memory.
  void begin_outputs(std::span<void* const> outputs, Address report, Stream steps);
  /// Waits until all outputs have arrived. Returns the error report.
  std::int64_t finish(Stream steps);
  /// Drops pending copies when the stream is idle.
  void abandon();
  /// Copies one port synchronously.
  void fetch(std::size_t port, void* target, Stream steps) const;
  std::uint64_t device_bytes() const { return memory_.bytes(); }
  std::uint64_t pinned_bytes() const { return in_.pinned_bytes() + out_.pinned_bytes(); }

 private:
  struct Port {
    /// Address in `memory_`.
    Address own = 0;
    std::uint64_t bytes = 0;
    /// Address used by launches: `own`, or the caller's memory.
    Address address = 0;
    /// Memory type of the caller's pointer.
    MemoryKind given = MemoryKind::Ordinary;
    bool is_state = false;
  };
  struct Late {
    void* target;
    std::size_t output;
  };
  const Port& at(std::size_t port) const {
    return port < inputs_.size() ? inputs_[port] : outputs_[port - inputs_.size()];
  }

  DeviceMemory memory_;
  std::vector<Port> inputs_, outputs_;
  Event callers_work_ = nullptr;
  Staging in_, out_;
  /// Outputs that did not fit in pinned memory.
  std::vector<Late> late_;
  /// Received error report.
  std::int64_t report_ = 0;
};

}  // namespace tenon::inline runtime::cuda
