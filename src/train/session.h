#pragma once

#include "distributed/distributed_step.h"
#include "distributed/rank_budget.h"
#include "distributed/state_buffers.h"
#include "passes/train/stateful_graph.h"
#include "planning/step_within_budget.h"
#include "program/program.h"
#include "runtime/executor.h"
#include "target/target_spec.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon::train {

/// Values of a graph's states, by name.
using States = std::vector<std::pair<std::string, Tensor>>;

/// Execution options of a session.
struct SessionOptions {
  /// 0: all threads of the process; results do not depend on it
  int thread_count = 0;
  /// Its precision is that of products; states keep their types.
  TargetSpec target = {};
  /// Memory budget of a run; an empty text disables it. The first runs are timed, and the plan is
  /// then refined with the measured times.
  planning::BudgetRequest budget = {};
  /// Gradient-accumulation builder, if the budget permits splitting the batch.
  planning::SplitStep split = {};
  /// replaces compilation for the target
  planning::CompileStep compile = {};
};

/// Ranks of a session, and number of parts of the batch.
struct SessionRanks {
  /// must outlive the session; null: this process alone
  Communicator* ranks = nullptr;
  /// same as for the graph
  std::int64_t micro_batches = 1;
  std::size_t bucket_bytes = distributed::DistributedStepOptions{}.bucket_bytes;
  /// tensor-parallel ranks, as `shard` has split the graph
  std::int64_t tensor_ranks = 1;
  /// as in DistributedStepOptions
  bool splits_gradients = false;
  /// samples of a part
  std::int64_t micro_batch_size = 1;
};

/// A rank's piece of a split state.
struct StatePiece {
  std::string whole;
  Shape shape;
  Tensor piece;
};

/// A compiled graph with states: each run takes a batch and passes the states on to the next run. A
/// run with a non-finite loss leaves them unchanged. Without ranks an `Executor` holds the states;
/// over ranks they are double-buffered in memory that the ranks see (`StateBuffers`).
class Session {
 public:
  /// States start with the graph's initial values. Throws Error (OutOfMemory) if the budget cannot
  /// be met.
  Session(passes::StatefulGraph graph, const SessionOptions& options,
          const SessionRanks& ranks = {});
  ~Session();
  Session(const Session&) = delete;

  /// Runs on a batch; returns the graph's data outputs.
  std::vector<Tensor> run(const std::vector<Tensor>& batch);
  /// Runs on this rank's parts of a batch.
  std::vector<Tensor> run_micro_batches(const std::vector<std::vector<Tensor>>& micro_batches);
  /// Returns the memory that this rank needs.
  distributed::RankNeeds needs() const;
  /// Null for a session without ranks and parts.
  distributed::DistributedStep* ranked() const { return ranked_.get(); }

  const passes::StatefulGraph& step() const { return step_; }
  const Graph& graph() const { return step_.graph; }
  /// Returns the states, sharing memory with the session until its next run. Excludes split states.
  States states() const;
  /// Returns all states, with those split along an axis gathered, and with `with_pieces` also
  /// parameters split by element. Collective: all ranks must call it.
  States gathered_states(bool with_pieces = true) const;
  /// Returns this rank's pieces of states split by element that are not contained in another state.
  /// Collective.
  std::vector<StatePiece> pieces() const;
  /// Returns the inputs of the last run in graph order; `batch` as it was given. Requires that its
  /// loss was not finite.
  std::vector<Tensor> inputs_before(const std::vector<Tensor>& batch) const;
  /// Sets the states of those names, taking this rank's pieces of split states. Throws Error if one
  /// is missing or does not fit.
  void set_states(const States& states);
  const Program& program() const;
  std::uint64_t arena_bytes() const;
  /// Bytes of all states, and of the second buffers.
  std::uint64_t state_bytes() const;
  std::uint64_t second_place_bytes() const;
  /// Releases the arena until the next run; states stay. For a session with a budget.
  void rest();
  /// Returns the planner of a session with a budget; null otherwise.
  const planning::BudgetPlanner* budget() const { return planner_.get(); }

 private:
  bool is_on_device() const { return executor_ && executor_->is_on_device(); }
  void make_ranked(const SessionOptions& options, const SessionRanks& ranks);
  // Sets every state to this rank's share of a tensor.
  void place_states(const std::function<Tensor(std::size_t state)>& whole);
  TensorType type_of(std::size_t state) const;
  // Returns the current value of a state, or its value before the last run.
  Tensor state_value(std::size_t state, bool is_before = false) const;
  void load(Program program);
  void learn_times(const RunEvents& events);

  std::unique_ptr<Communicator> alone_;
  Communicator* ranks_;
  std::int64_t tensor_ranks_;
  passes::StatefulGraph step_;  // as given: names and initial values
  std::vector<std::size_t> data_inputs_, data_outputs_;
  bool is_for_device_;
  bool is_plan_new_ = false;  // on a device: taken by the next run
  std::unique_ptr<distributed::DistributedStep> ranked_;
  std::unique_ptr<distributed::StateBuffers> places_;  // of ranks
  std::int64_t step_number_ = 0;                       // of the ranks' next run
  std::unique_ptr<Executor> executor_;                 // without ranks
  int thread_count_;
  std::unique_ptr<planning::BudgetPlanner> planner_;
  int timed_runs_ = 0;
};

/// Returns the first node or input with a NaN, or else an infinite value, in a run of the graph;
/// empty if all values are finite. Uses the reference.
std::string first_not_finite(const passes::StatefulGraph& step, const std::vector<Tensor>& inputs);

}  // namespace tenon::train
