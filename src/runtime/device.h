#pragma once

#include "program/program.h"
#include "runtime/bound_shapes.h"
#include "runtime/segments.h"
#include "runtime/state_memory.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tenon::inline runtime {

/// Times of a library's algorithms for one step of the program; infinity if one does not run.
struct TimedCandidates {
  std::size_t step = 0;
  std::vector<double> seconds;
  /// Number of repetitions; each time is the minimum over them.
  std::int64_t runs = 0;
};

/// Executes a program with bound shapes on a device: arena, launches, and copies of inputs and
/// outputs.
class DeviceContext {
 public:
  virtual ~DeviceContext() = default;

  /// Allocates buffers and prepares the launches of a segment. The shapes must outlive the context
  /// or be bound again.
  virtual void prepare(const BoundShapes& shapes, const Segment& segment) = 0;
  /// Copies inputs to the device, runs, and copies outputs back, except null outputs. Device memory
  /// of the caller is used in place, after the work on its default stream. `seconds`, unless empty,
  /// accumulates time by step of the program.
  virtual void run(std::span<const void* const> inputs, std::span<void* const> outputs,
                   std::span<double> seconds) = 0;
  /// Asynchronous run: until `finish` returns, outputs are undefined, pinned and device memory of
  /// the caller is in use, and the context accepts no other call. Pageable inputs may be released
  /// on return. Contexts overlap: one copies while another computes.
  virtual void start(std::span<const void* const> inputs, std::span<void* const> outputs) {
    run(inputs, outputs, {});
  }
  /// Waits for the started run. Throws the errors of `run`.
  virtual void finish() {}
  /// Sets a callback that each run makes for each of these steps, in order, once the device has
  /// completed all steps up to it and before the run ends. Others may then read the results that
  /// these steps wrote to device memory of the caller.
  virtual void call_after(std::vector<std::size_t> steps,
                          std::function<void(std::size_t step)> call) = 0;
  /// Copies an output of the last run, except of a state, from the device.
  virtual void fetch_output(std::size_t output, void* target) = 0;
  /// Repeats the run on the present inputs and leaves the outputs on the device. Returns the device
  /// time in seconds.
  virtual double replay() = 0;
  /// Times the library algorithms of these steps on the bound shapes and selects the fastest.
  virtual std::vector<TimedCandidates> time_candidates(const std::vector<bool>& steps) = 0;
  /// Returns the time in seconds of consecutive steps on the bound shapes and the present data.
  virtual double time_steps(std::size_t first, std::size_t count) = 0;
  virtual std::uint64_t arena_bytes() const = 0;
  virtual std::uint64_t scratch_bytes() const = 0;
  /// Pinned host memory for offloaded values and staging.
  virtual std::uint64_t pinned_bytes() const { return 0; }
  /// Device memory of everything that a run needs: arena, scratch, inputs, outputs, constants,
  /// code.
  virtual std::uint64_t device_bytes() const { return 0; }
};

/// A program's code and constants on a device, shared by any number of contexts.
class DeviceExecutable {
 public:
  virtual ~DeviceExecutable() = default;
  virtual std::unique_ptr<DeviceContext> make_context() const = 0;
  /// Returns memory of the device. States of a kernel-only program live there: contexts get their
  /// addresses as inputs and outputs.
  virtual std::shared_ptr<const StateMemory> state_memory() const {
    return std::make_shared<StateMemory>();
  }
};

/// True if the program targets a device, e.g. "cuda:sm_90a".
bool is_for_device(const Program& program);

/// Throws Error (Device) if the device or its driver is missing. The program must outlive it.
std::shared_ptr<const DeviceExecutable> load_on_device(const Program& program);

}  // namespace tenon::inline runtime
