#pragma once

#include "driver/parallel/rank_budget.h"
#include "driver/parallel/ranked_step.h"
#include "driver/parallel/state_places.h"
#include "driver/planning/step_within.h"
#include "host/context.h"
#include "passes/train/stateful_graph.h"
#include "program/program.h"
#include "runtime/executable.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon {

/// The values of a graph's states, by name.
using States = std::vector<std::pair<std::string, Tensor>>;

/// What a session computes on.
struct SessionOptions {
  /// 0: as many as the process may use; results do not depend on it
  int thread_count = 0;
  /// as CompileRequest::cpu
  std::string target = "native";
  /// "f16", "bf16", "tf32": products; states stay as they are
  std::string precision = "";
  /// The memory of a run stays within it; its text empty: there is none. The first runs are timed,
  /// and the plan is made again with what they took.
  BudgetRequest budget = {};
  /// How the step is made in parts of its batch, where the budget allows that.
  SplitStep split = {};
  /// in place of compiling for the target
  CompileStep compile = {};
};

/// Over which ranks a session runs, in how many parts of the batch.
struct SessionRanks {
  /// outlives the session; null: this process alone
  Communicator* ranks = nullptr;
  /// as the graph was made for
  std::int64_t parts = 1;
  std::size_t bucket_bytes = RankedStepOptions{}.bucket_bytes;
  /// that share out the tensors of a part, as `shard` has split them
  std::int64_t tensor_ranks = 1;
  /// as RankedStepOptions has it
  bool splits_gradients = false;
  /// samples of a part
  std::int64_t part_size = 1;
};

/// What a rank has of a state that is split.
struct StatePiece {
  std::string whole;
  Shape shape;
  Tensor piece;
};

/// A graph with states, compiled: each run takes a batch and leaves the states to the next. A run
/// whose loss is not finite leaves them as they were. What is next takes the place of what was
/// before, where the kernels and their order prove that nobody reads it later; else, on a device
/// and over ranks a state has two places, of which a run reads one and writes the other.
class Session {
 public:
  /// States begin as the graph says. Throws Error (OutOfMemory) for a budget that cannot be kept.
  Session(StatefulGraph graph, const SessionOptions& options, const SessionRanks& ranks = {});
  ~Session();
  Session(const Session&) = delete;

  /// The graph's outputs without the states'.
  std::vector<Tensor> run(const std::vector<Tensor>& batch);
  /// The same for this rank's parts of a batch.
  std::vector<Tensor> run_parts(const std::vector<std::vector<Tensor>>& parts);
  /// What this rank holds of ranks' steps.
  RankNeeds needs() const;
  /// Null where neither ranks nor parts were asked for.
  RankedStep* ranked() const { return ranked_.get(); }

  const StatefulGraph& step() const { return step_; }
  const Graph& graph() const { return step_.graph; }
  /// They share memory with the session until it runs again. Without those that are split.
  States states() const;
  /// With those that are split along an axis, and parameters that are split element by element
  /// (`with_pieces`), put together: on every rank, when all ranks ask.
  States gathered_states(bool with_pieces = true) const;
  /// Of states that are split element by element, what no other state has; likewise.
  std::vector<StatePiece> pieces() const;
  /// What the last run read, by input of the graph; `batch` as it was given. Asks for a run whose
  /// loss was not finite.
  std::vector<Tensor> inputs_before(const std::vector<Tensor>& batch) const;
  /// Takes the states of those names over, and its pieces of those that are split. Throws Error
  /// where one is missing or does not fit.
  void set_states(const States& states);
  const Program& program() const;
  std::uint64_t arena_bytes() const;
  /// Bytes of all states, and of those that have a second place.
  std::uint64_t state_bytes() const;
  std::uint64_t second_place_bytes() const;
  /// Gives the arena back until the next run; states stay. For a session with a budget.
  void rest();
  /// Of a session with a budget; else nothing.
  const BudgetPlanner* budget() const { return planner_.get(); }

 private:
  bool is_on_device() const { return is_for_device_ && model_; }
  void make_ranked(const SessionOptions& options, const SessionRanks& ranks);
  void place_states();
  bool are_ranks_on_device() const { return ranked_ && ranked_->place().is_device; }
  // A state as it is now, or as it was before the last run.
  Tensor state_value(std::size_t state, bool is_before = false) const;
  std::vector<Tensor> run_on_device(const std::vector<Tensor>& batch);
  void load(Program program);
  void open_context();
  void choose_places();
  void learn_times();
  /// Tensors by input of the graph: the batch, and the states among them.
  std::vector<Tensor> inputs(const std::vector<Tensor>& batch,
                             const std::vector<Tensor>& states) const;

  std::unique_ptr<Communicator> alone_;
  Communicator* ranks_;
  std::int64_t tensor_ranks_;
  StatefulGraph step_;  // as it was given: its names and initial values
  std::vector<std::size_t> data_inputs_, data_outputs_;
  std::vector<Tensor> now_, before_;     // on a device `now_` alone: what is to go there; of
                                         // ranks', types alone once they have their places
  std::vector<StatePorts> overwritten_;  // as far as kernels are concerned
  std::vector<char> is_in_place_;        // by state: `before_` has nothing there
  bool is_for_device_;
  bool is_set_ = true;        // since the last run, or never run
  bool is_plan_new_ = false;  // on a device: the next run takes it
  std::unique_ptr<RankedStep> ranked_;
  std::unique_ptr<StatePlaces> places_;  // of ranks
  std::int64_t step_number_ = 0;         // of ranks' next run
  // Else one of the two, as the program is kernels alone or has other steps.
  std::shared_ptr<const Executable> model_;
  std::unique_ptr<Context> context_;
  int thread_count_;
  std::unique_ptr<BudgetPlanner> planner_;
  Watch watch_;
  int timed_runs_ = 0;
  std::shared_ptr<const HostExecutable> host_model_;
  std::unique_ptr<HostContext> host_;
};

/// What first was not a number, or else not finite, when a graph runs: the node, or an input; empty
/// where all is finite. Runs in the reference.
std::string first_not_finite(const StatefulGraph& step, const std::vector<Tensor>& inputs);

}  // namespace tenon
