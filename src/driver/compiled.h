#pragma once

#include "driver/in_flight.h"
#include "host/context.h"
#include "ir/graph.h"
#include "ir/state_ports.h"
#include "ops/evaluation.h"
#include "program/totals.h"
#include "runtime/executable.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// Runs the standard passes over a graph and compiles what comes out.
/// `target`: a processor ("native", "x86-64-v3") or a device ("cuda:sm_90a").
Program compile_graph(Graph graph, const std::string& target = "native",
                      bool allow_winograd = true);

/// A graph of a program's inputs alone, so that they are read as a model's are.
Graph input_ports(const Program& program);
/// The names of some of its buffers.
std::vector<std::string> names_of(const Program& program,
                                  const std::vector<std::uint32_t>& buffers);

/// What a step took and did, in all the runs that were timed.
struct StepTime {
  std::string name, value, candidate;
  double seconds = 0, flops = 0, bytes = 0;
};

/// A program on this machine, taking and giving values, whatever its steps are.
class CompiledModel {
 public:
  CompiledModel(Program program, int thread_count);

  /// Throws Error if an input does not fit, or if the data breaks an op's rules.
  std::vector<Datum> run(const std::vector<Datum>& inputs);

  /// The same in two steps, for whoever runs more than once: fixes shapes and memory, then runs.
  void prepare(std::vector<Datum> inputs);
  /// From the next preparation on these outputs take the memory of these inputs where the order of
  /// steps allows it; what writes them has to (`codegen::overwritten_states`).
  void overwrite(const std::vector<StatePorts>& ports);
  void run_prepared();
  /// The same, and adds up the seconds of each step of a program of kernels alone.
  void run_prepared(std::vector<double>& seconds);
  /// Called before each run of a body, such as a trip of a loop; what it throws ends the run.
  void before_bodies(std::function<void()> call);
  /// The same, and tells what was seen of every step.
  void run_watched(RunEvents& events);
  /// From then on such a run times one step in `stride`, where the program is of kernels alone.
  void sample(std::uint32_t stride, std::uint32_t phase) { watch_.sample(stride, phase); }
  /// The same, looking at what each step made.
  void run_looking(const HostContext::Looks& looks);
  /// Runs so often, and tells of each step: kernels, then operators and control flow.
  std::vector<StepTime> timed_steps(int run_count);
  /// On a device: runs again on what is there. Gives the device's own time in seconds.
  double replay();
  bool is_on_device() const { return context_ && context_->is_on_device(); }
  /// Of a program of kernels alone: so many contexts, with what was prepared.
  InFlight in_flight(std::size_t contexts) const {
    return {model_, thread_count(), inputs_, contexts};
  }
  /// On a device: times what libraries offer for these steps, and goes on with the fastest.
  std::vector<TimedWays> time_ways(const std::vector<bool>& steps) {
    return context_->time_ways(steps);
  }
  /// On a device: the seconds of these steps, on what was prepared.
  double time_steps(std::size_t first, std::size_t count) {
    return context_->time_steps(first, count);
  }
  std::vector<Datum> outputs() const;

  const Program& program() const { return model_ ? model_->program() : host_model_->program(); }
  const KernelRunner& runner() const { return context_ ? context_->runner() : host_->runner(); }
  /// All of the arena, to be looked at between runs or filled before one.
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
  // Of a program with other steps than kernels, in place of the above.
  std::shared_ptr<const HostExecutable> host_model_;
  std::optional<HostContext> host_;
  std::vector<Datum> given_, made_;
};

}  // namespace tenon
