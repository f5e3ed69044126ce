#pragma once

#include "runtime/executable.h"
#include "runtime/host_steps.h"
#include "runtime/state_values.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace tenon::inline runtime {

/// Execution of any program for one caller: kernels, host operators, devices. It owns an arena, the
/// pointers of every step and the values of the program's states. An executor is used by one thread
/// at a time; concurrent use throws Error (Usage). Calling a function marked "On a device" for a
/// program on the CPU is an error of the caller, and so is a run with unbound shapes: both fail an
/// assertion or are undefined.
class Executor {
 public:
  /// `thread_count` 0 uses all available threads. Results do not depend on it. Throws Error
  /// (Unsupported) for a program with host steps that was loaded without operators. Binds the
  /// shapes of a kernel-only program without symbols.
  Executor(std::shared_ptr<const Executable> model, int thread_count);
  Executor(Executor&&) noexcept;
  ~Executor();

  const std::shared_ptr<const Executable>& model() const;
  const Program& program() const;
  /// True if the program targets a GPU and has no host steps.
  bool is_on_device() const;
  int thread_count() const;

  /// Binds the shapes of the inputs: required before the first run if any is symbolic, and after
  /// every change. Shapes of states are those of their values. Throws Error, with name, axis and
  /// range, for a shape that the model does not accept.
  void bind(std::span<const std::vector<std::int64_t>> input_shapes);
  /// Returns the extents of an output for the bound shapes; the caller allocates it. Throws Error
  /// (Unsupported) if they depend on the data.
  const std::vector<std::int64_t>& output_shape(std::size_t output) const;
  /// Reads a replaceable constant (`Buffer::is_weight`) from `data`, which must outlive the
  /// executor. Throws Error (Unsupported) on a device.
  void replace_constant(std::uint32_t buffer, const std::byte* data);

  /// Runs once: a kernel-only program without allocations. One pointer per input and output, in the
  /// program's order, into memory that the caller owns; null for states. Inputs and outputs are
  /// row-major, with any alignment. Throws Error if a kernel reports a data error (an index out of
  /// bounds, an integer division by zero) or if constants are altered; outputs, and states that are
  /// updated in place, are then undefined.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs,
           const Observers& observers = {});
  /// Runs once on values, and binds their shapes. Outputs without data get memory, which a later
  /// run uses again once no one holds it.
  void run(std::span<const PortValue> inputs, std::span<PortValue> outputs,
           const Observers& observers = {});
  /// Split-phase run: on a device `start` does not wait, so that one thread keeps several executors
  /// busy and copies overlap with computation; on the processor `start` runs. Until `finish`
  /// returns, outputs are undefined, pinned and device memory must not change, and other calls
  /// throw Error (Usage). Either call may report a failure.
  void start(std::span<const void* const> inputs, std::span<void* const> outputs);
  void finish();
  /// Throws Error (Usage) if a started run is not finished.
  void require_idle() const;

  /// State by name; throws Error (Usage) for an unknown one.
  std::size_t find_state(std::string_view name) const;
  /// Values of the states between runs; a state without a value that needs none from the caller
  /// gets its initial one.
  const StateValues& states() const;
  /// Returns the value before the next run. Throws Error (Usage) without one.
  const StateValues::Value& state(std::size_t state);
  void read_state(std::size_t state, void* to);
  /// Copies a value; `data` may be memory of the device.
  void write_state(std::size_t state, std::vector<std::int64_t> shape, const void* data);
  /// Keeps the state in memory of the caller (of the device, on a device): each run reads it there
  /// and leaves the next value there.
  void bind_state(std::size_t state, std::vector<std::int64_t> shape,
                  std::shared_ptr<std::byte> memory);
  /// Gives all states their initial values.
  void reset_states();
  /// Takes the states of another executor of a program with equal states: both share memory until
  /// one of them writes it.
  void share_states(const Executor& from);
  /// Returns an executor of the same program with the present states (copy on write).
  Executor fork() const;

  /// Releases the arena until the next run; states stay.
  void rest();
  std::uint64_t arena_bytes() const;
  std::uint64_t scratch_bytes() const;

  /// Sets a callback before each execution of a body, e.g. a loop iteration.
  void set_body_callback(std::function<void()> call);
  /// Makes runs with `Observers::events` time only one kernel in `stride`.
  void sample(std::uint32_t stride, std::uint32_t phase);
  /// On a device: sets a callback that each run makes for each of these steps, in order, once the
  /// device has completed all steps up to it (`DeviceContext::call_after`).
  void call_after(std::vector<std::size_t> steps, std::function<void(std::size_t step)> call);
  /// On a device: repeats the last run on the inputs and states that are still there. Returns the
  /// device time in seconds.
  double replay();
  /// On a device: times the library algorithms of the steps for which `steps`, indexed by step of
  /// the program, is true, on the bound shapes; the executor uses the fastest from then on.
  std::vector<TimedCandidates> time_candidates(const std::vector<bool>& steps);
  /// On a device: executes the steps [first, first + count) on the bound shapes and the present
  /// data. Returns the device time in seconds.
  double time_steps(std::size_t first, std::size_t count);
  /// Bound shapes, symbols and addresses of the last run's buffers.
  const KernelRunner& runner() const;
  /// The whole arena, for inspection between runs or initialization before one.
  std::span<std::byte> arena();

 private:
  struct Run;
  std::unique_ptr<Run> run_;
};

/// Reserves an executor for one thread. Concurrent use would corrupt its memory and produce wrong
/// numbers intermittently; it throws Error (Usage) instead.
class ExecutorUse {
 public:
  explicit ExecutorUse(std::atomic_flag& is_in_use);
  ExecutorUse(const ExecutorUse&) = delete;
  ~ExecutorUse() { is_in_use_.clear(std::memory_order_release); }

 private:
  std::atomic_flag& is_in_use_;
};

}  // namespace tenon::inline runtime
