#pragma once

#include "runtime/bound_shapes.h"
#include "runtime/cuda/staging.h"
#include "runtime/device.h"
#include "runtime/segments.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tenon::cuda {

/// The inputs and outputs of a segment: where launches have them, and how they come and go. They
/// are numbered together, inputs first. Ordinary memory of the caller's is copied by way of pinned
/// memory, pinned memory as it is; the device's is used where it lies.
class Ports {
 public:
  Ports() = default;
  Ports(const Ports&) = delete;
  ~Ports();

  /// Makes room for them. Throws Error (OutOfMemory).
  void place(const BoundShapes& shapes, const Segment& segment);
  void keep(std::vector<Feedback> states) { states_ = std::move(states); }
  bool has_states() const { return !states_.empty(); }
  std::size_t input_count() const { return inputs_.size(); }
  Address address(std::size_t port) const { return at(port).address; }

  /// Looks at what the caller gives for a run. Memory of the device's is where launches read and
  /// write from now on, if it lies as theirs does, behind the work on its default stream; states
  /// stay in their own. Tells whether any address is another than before.
  bool look_at(std::span<const void* const> inputs, std::span<void* const> outputs, Stream steps);
  /// States come in where the run before left them, and go out where it had them from: nothing is
  /// copied, and what they were before is still there.
  void turn_states();
  /// Copies the inputs. Ordinary memory is not read any more when it is back.
  void begin_inputs(std::span<const void* const> inputs, Stream steps);
  /// Has the outputs on their way, and a number that kernels report, as far as there is pinned
  /// memory for them.
  void begin_outputs(std::span<void* const> outputs, Address report, Stream steps);
  /// Waits until outputs are where the caller wants them. Gives the number.
  std::int64_t finish(Stream steps);
  /// Forgets what is under way, once nothing runs any more.
  void abandon();
  /// Copies one and waits for it.
  void fetch(std::size_t port, void* target, Stream steps) const;
  std::uint64_t device_bytes() const { return memory_.bytes(); }
  std::uint64_t pinned_bytes() const { return in_.pinned_bytes() + out_.pinned_bytes(); }

 private:
  struct Port {
    /// in `memory_`
    Address own = 0;
    std::uint64_t bytes = 0;
    /// where the launches have it: there, or in the caller's memory
    Address address = 0;
    /// what the caller gave for it
    MemoryKind given = MemoryKind::Ordinary;
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
  std::vector<Feedback> states_;
  Event callers_work_ = nullptr;
  Staging in_, out_;
  /// outputs for which there was no pinned memory
  std::vector<Late> late_;
  /// what came of the number
  std::int64_t report_ = 0;
};

}  // namespace tenon::cuda
