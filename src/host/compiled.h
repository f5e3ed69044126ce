#pragma once

#include "host/context.h"
#include "host/in_flight.h"
#include "ir/graph.h"
#include "ir/state_ports.h"
#include "ops/definition/evaluation.h"
#include "program/totals.h"
#include "runtime/executable.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon::inline host {

/// Returns a graph with only the inputs of a program, to parse input arguments like those of a
/// model.
Graph input_ports(const Program& program);
/// Returns the names of buffers.
std::vector<std::string> names_of(const Program& program,
                                  const std::vector<std::uint32_t>& buffers);

/// Time and work of a step, summed over the timed runs.
struct StepTime {
  std::string name, value, candidate;
  double seconds = 0, flops = 0, bytes = 0;
};

/// A compiled program on this machine with values as inputs and outputs, with or without host
/// steps.
class CompiledModel {
 public:
  CompiledModel(Program program, int thread_count);

  /// Throws Error if an input does not fit, or if the data violates an op's requirements.
  std::vector<Datum> run(const std::vector<Datum>& inputs);

  /// Splits `run` for repeated runs: `prepare` fixes shapes and memory, `run_prepared` runs.
  void prepare(std::vector<Datum> inputs);
  /// From the next preparation on, outputs share memory with these inputs (in-place updates), where
  /// the order of steps allows it and kernels support it (`codegen::overwritten_states`).
  void overwrite(const std::vector<StatePorts>& ports);
  void run_prepared();
  /// Runs, and adds up the seconds of each step of a kernel-only program.
  void run_prepared(std::vector<double>& seconds);
  /// Sets a callback before each run of a body, such as a loop iteration; an exception from it ends
  /// the run.
  void set_body_callback(std::function<void()> call);
  /// Runs, and reports the events of every step.
  void run_watched(RunEvents& events);
  /// Makes watched runs of a kernel-only program time only one step in `stride`.
  void sample(std::uint32_t stride, std::uint32_t phase) { watch_.sample(stride, phase); }
  /// Runs with observers of each step's results.
  void run_observed(const HostContext::Observers& observers);
  /// Runs repeatedly and returns the time of each step: kernels first, then host operators and
  /// control flow.
  std::vector<StepTime> timed_steps(int run_count);
  /// On a device: replays the last run. Returns the device time in seconds.
  double replay();
  bool is_on_device() const { return context_ && context_->is_on_device(); }
  /// For kernel-only programs: returns that number of contexts, with the prepared inputs.
  InFlight in_flight(std::size_t contexts) const {
    return {model_, thread_count(), inputs_, contexts};
  }
  /// On a device: times the library algorithms for these steps and keeps the fastest.
  std::vector<TimedCandidates> time_candidates(const std::vector<bool>& steps) {
    return context_->time_candidates(steps);
  }
  /// On a device: returns the seconds of these steps on the prepared inputs.
  double time_steps(std::size_t first, std::size_t count) {
    return context_->time_steps(first, count);
  }
  std::vector<Datum> outputs() const;

  const Program& program() const { return model_ ? model_->program() : host_model_->program(); }
  const KernelRunner& runner() const { return context_ ? context_->runner() : host_->runner(); }
  /// Returns the whole arena, to be inspected between runs or filled before one.
  std::span<std::byte> arena() { return context_ ? context_->arena() : host_->runner().arena(); }
  const ProgramTotals& totals() const { return totals_; }
  int thread_count() const { return runner().thread_count(); }
  std::uint64_t arena_bytes() const {
    return context_ ? context_->arena_bytes() : host_->arena_bytes();
  }
  std::uint64_t scratch_bytes() const {
    return context_ ? context_->scratch_bytes() : host_->scratch_bytes();
  }

 private:
  void place_outputs();

  ProgramTotals totals_;
  std::shared_ptr<const Executable> model_;
  std::optional<Context> context_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<StatePorts> overwritten_;
  std::vector<const void*> sources_;
  std::vector<void*> targets_;
  Watch watch_;
  // For a program with host steps, instead of the above.
  std::shared_ptr<const HostExecutable> host_model_;
  std::optional<HostContext> host_;
  std::vector<Datum> given_, made_;
};

}  // namespace tenon::inline host
