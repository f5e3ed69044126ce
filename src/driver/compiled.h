#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/composed.h"
#include "ir/graph.h"
#include "ops/evaluation.h"
#include "program/totals.h"
#include "runtime/model.h"

namespace tenon {

/// Runs the standard passes over a graph and compiles what comes out.
/// `target`: a processor ("native", "x86-64-v3") or a device ("cuda:sm_90a").
Program compile_graph(Graph graph, const std::string& target = "native", bool allow_winograd = true);

/// A graph of a program's inputs alone, so that they are read as a model's are.
Graph input_ports(const Program& program);
/// The names of some of its buffers.
std::vector<std::string> names_of(const Program& program, const std::vector<std::uint32_t>& buffers);

/// What a step took and did, in all the runs that were timed.
struct StepTime {
  std::string name, candidate;
  double seconds = 0, flops = 0, bytes = 0;
};

/// A program on this machine, taking and giving values: kernels alone, or parts with what runs between
/// them.
class CompiledModel {
 public:
  CompiledModel(Program program, int thread_count);

  /// Throws Error if an input does not fit, or if the data breaks an op's rules.
  std::vector<Datum> run(const std::vector<Datum>& inputs);

  /// The same in two steps, for whoever runs more than once: fixes shapes and memory, then runs.
  void prepare(const std::vector<Datum>& inputs);
  void run_prepared();
  /// The same, and adds up the seconds of each step of a program that is not made of parts.
  void run_prepared(std::vector<double>& seconds);
  /// Called before each run of a body, such as a trip of a loop; what it throws ends the run.
  void before_bodies(std::function<void()> call);
  /// The same, and tells what was seen of every step.
  void run_watched(RunEvents& events);
  /// The same, looking at what each step made. A program that is not made of parts is one, of number 0.
  void run_looking(const ComposedContext::Looks& looks);
  /// Runs so often, and tells of each step; of a program made of parts, of those of all parts.
  std::vector<StepTime> timed_steps(int run_count);
  /// On a device: runs again on what is there. Gives the device's own time in seconds.
  double replay();
  bool is_on_device() const { return context_ && context_->is_on_device(); }
  /// On a device: times what libraries offer for each step, takes the fastest, and gives them by step.
  std::vector<std::string> tuned_candidates() { return context_->tuned_candidates(); }
  std::vector<Datum> outputs() const;

  const Program& program() const { return model_ ? model_->program() : composed_model_->program(); }
  /// The parts that have kernels: the program itself where it is not made of any.
  std::size_t part_count() const { return model_ ? 1 : composed_model_->part_count(); }
  const Program& part(std::uint32_t number) const { return model_ ? model_->program() : composed_model_->part(number); }
  std::size_t routine_step_count() const { return model_ ? 0 : composed_model_->routine_step_count(); }
  const Routine::Step& routine_step(std::uint32_t number) const { return composed_model_->routine_step(number); }
  /// Null for a part that never ran.
  const Context* part_context(std::uint32_t number) const { return context_ ? &*context_ : composed_->part_context(number); }
  Context* part_context(std::uint32_t number) { return context_ ? &*context_ : composed_->part_context(number); }
  const ProgramTotals& totals() const { return totals_; }
  int thread_count() const { return context_ ? context_->thread_count() : composed_->thread_count(); }
  std::uint64_t arena_bytes() const { return context_ ? context_->arena_bytes() : composed_->arena_bytes(); }
  std::uint64_t scratch_bytes() const { return context_ ? context_->scratch_bytes() : composed_->scratch_bytes(); }

 private:
  void place_outputs();

  ProgramTotals totals_;
  std::shared_ptr<const Model> model_;
  std::optional<Context> context_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<const void*> sources_;
  std::vector<void*> targets_;
  Watch watch_;
  // Of a program made of parts, in place of the above.
  std::shared_ptr<const ComposedModel> composed_model_;
  std::optional<ComposedContext> composed_;
  std::vector<Datum> given_, made_;
};

}  // namespace tenon
