#pragma once

#include "program/program.h"
#include "runtime/bound_shapes.h"
#include "runtime/segments.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tenon {

/// An input that is, in every run, what an output became in the run before: a state.
struct Feedback {
  std::size_t input = 0, output = 0;
};

/// How long the ways take that a library knows for a step of the program; infinity: it does not
/// run.
struct TimedWays {
  std::size_t step = 0;
  std::vector<double> seconds;
  /// of which each is the least
  std::int64_t runs = 0;
};

/// Runs bound shapes of a program on a device: its arena, its launches, its copies of inputs and
/// outputs.
class DeviceContext {
 public:
  virtual ~DeviceContext() = default;

  /// Places buffers and makes the launches of a segment ready. The shapes must outlive it or be
  /// bound again.
  virtual void prepare(const BoundShapes& shapes, const Segment& segment) = 0;
  /// From now on these inputs and outputs of the segment stay on the device between runs: a run
  /// whose input is null goes on from the output before it.
  virtual void keep(std::vector<Feedback> states) = 0;
  /// Copies what the segment reads to the device, runs, copies what it writes back, but for outputs
  /// that are null. Memory of the device itself is used where it lies, once the work on its default
  /// stream is done. `seconds`, unless empty: by step of the program, added up.
  virtual void run(std::span<const void* const> inputs, std::span<void* const> outputs,
                   std::span<double> seconds) = 0;
  /// The same without waiting: until `finish`, which waits, outputs are not there, memory of the
  /// caller's that is pinned or the device's is read and written, and nothing else is asked of the
  /// context. Ordinary memory of inputs may go as soon as it is back. Contexts run beside each
  /// other: one copies while another computes.
  virtual void start(std::span<const void* const> inputs, std::span<void* const> outputs) {
    run(inputs, outputs, {});
  }
  /// Waits for the run that was started. Throws what `run` throws.
  virtual void finish() {}
  /// From now on a run calls `call` with each of these steps of the program, in their order, as
  /// soon as the device is done with all steps up to it and before the run ends: what they wrote to
  /// memory of the device's that the caller gave can be read by others then.
  virtual void call_behind(std::vector<std::size_t> steps,
                           std::function<void(std::size_t step)> call) = 0;
  /// Copies an input of the last run, or an output, from the device.
  virtual void fetch_input(std::size_t input, void* target) = 0;
  virtual void fetch_output(std::size_t output, void* target) = 0;
  /// Runs again on the inputs that are there, and leaves the outputs there. Gives the device's own
  /// time in seconds.
  virtual double replay() = 0;
  /// Times the ways that libraries know for these steps of the program, on the shapes that are
  /// bound, and goes on with the fastest.
  virtual std::vector<TimedWays> time_ways(const std::vector<bool>& steps) = 0;
  /// How many seconds these steps of the program take on the shapes that are bound, one after
  /// another as in a run, on what lies there.
  virtual double time_steps(std::size_t first, std::size_t count) = 0;
  virtual std::uint64_t arena_bytes() const = 0;
  virtual std::uint64_t scratch_bytes() const = 0;
  /// Of the host, for values that are swapped out and for inputs and outputs on their way.
  virtual std::uint64_t pinned_bytes() const { return 0; }
  /// Of the device, of all that a run holds there: arena, scratch, inputs, outputs, constants,
  /// code.
  virtual std::uint64_t device_bytes() const { return 0; }
};

/// A program's code and constants on a device; any number of contexts share it.
class DeviceExecutable {
 public:
  virtual ~DeviceExecutable() = default;
  virtual std::unique_ptr<DeviceContext> make_context() const = 0;
};

/// Whether the program is for a device, as "cuda:sm_90a" is.
bool is_for_device(const Program& program);

/// Throws Error (Device) if there is no such device here, or no driver. The program must outlive
/// it.
std::shared_ptr<const DeviceExecutable> load_on_device(const Program& program);

}  // namespace tenon
