#pragma once

#include "host/context.h"
#include "host/in_flight.h"
#include "ir/graph.h"
#include "ops/definition/evaluation.h"
#include "program/totals.h"
#include "runtime/executor.h"

#include <memory>
#include <string>
#include <vector>

namespace tenon::inline host {

/// Returns a graph with only the inputs and states of a program, to parse input arguments like
/// those of a model.
Graph input_ports(const Program& program);
/// Returns the names of buffers.
std::vector<std::string> names_of(const Program& program,
                                  const std::vector<std::uint32_t>& buffers);

/// Time and work of a step, summed over the timed runs.
struct StepTime {
  std::string name, value, candidate;
  double seconds = 0, flops = 0, bytes = 0;
};

/// A compiled program on this machine with values as inputs and outputs.
class CompiledModel {
 public:
  CompiledModel(Program program, int thread_count);

  /// Takes a value for each input; for a state, its value before the run, or an empty optional to
  /// go on with the present one. Throws Error if an input does not fit, or if the data violates an
  /// op's requirements.
  std::vector<Datum> run(const std::vector<Datum>& inputs);

  /// Splits `run` for repeated runs: `prepare` fixes shapes and memory, `run_prepared` runs and
  /// passes the states on.
  void prepare(std::vector<Datum> inputs);
  void run_prepared();
  /// Runs, and adds up the seconds of each step.
  void run_prepared(std::vector<double>& seconds);
  /// Runs, and reports the events of every step.
  void run_watched(RunEvents& events);
  /// Runs with observers of each step's results.
  void run_observed(const Observers& observers);
  /// Runs repeatedly and returns the time of each step: kernels first, then host operators and
  /// control flow.
  std::vector<StepTime> timed_steps(int run_count);
  /// Returns that number of contexts, with the prepared inputs, of a program whose shapes do not
  /// depend on data.
  InFlight in_flight(std::size_t contexts) const;
  std::vector<Datum> outputs() const;

  Executor& executor() { return executor_; }
  const Executor& executor() const { return executor_; }
  bool is_on_device() const { return executor_.is_on_device(); }
  const Program& program() const { return executor_.program(); }
  const KernelRunner& runner() const { return executor_.runner(); }
  const ProgramTotals& totals() const { return totals_; }
  int thread_count() const { return executor_.thread_count(); }

 private:
  ProgramTotals totals_;
  Executor executor_;
  std::vector<PortValue> inputs_, outputs_;
};

}  // namespace tenon::inline host
