#pragma once

#include "ops/definition/evaluation.h"
#include "passes/definition/pass.h"
#include "reference/evaluate.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon::testing {

/// Failure of a pass on a graph.
struct PassFailure {
  /// Kind of failure; reduction preserves it.
  enum class Kind : std::uint8_t {
    Throws,
    BreaksGraph,
    ChangesInterface,
    RefusesInputs,
    ChangesResult
  };
  Kind kind = Kind::ChangesResult;
  /// "output 'y'"
  std::string where;
  /// "element 3 is 1.0 instead of 2.0"
  std::string what;
};

struct PassCheckOptions {
  int trial_count = 4;
  std::uint64_t seed = 1;
  int thread_count = 0;
  /// Replaces inputs on which more nodes would run, including those in loops.
  std::int64_t max_node_runs = 200000;
  /// likewise for a larger tensor
  std::int64_t max_result_bytes = std::int64_t{4} << 30;
  passes::PassOptions pass_options;
  /// Called with the number of completed trials of a pass's graph.
  std::function<void(std::size_t done, std::size_t total)> on_progress;
};

/// Runs the pass over the graph and compares both on these inputs; nullopt on success. Throws Error
/// if the graph itself does not run on them.
std::optional<PassFailure> failure_of(const passes::Pass& pass, const Graph& graph,
                                      const std::vector<Datum>& inputs,
                                      const passes::PassOptions& options,
                                      const reference::EvaluateOptions& how);

/// Runs graphs on several sets of inputs, including edge values, as passes change them. Replaces
/// inputs that the first graph refuses.
class PassChecker {
 public:
  PassChecker(const Graph& graph, PassCheckOptions options);

  struct Trial {
    std::vector<Datum> inputs, outputs;
  };
  /// Returns the sets of inputs with the last graph's outputs.
  const std::vector<Trial>& trials() const { return trials_; }
  /// Returns the number of sets of inputs that the graph runs on.
  std::size_t trial_count() const { return trials_.size(); }
  /// Compares the result of a pass with `before`, which must be the last graph. `inputs_of_failure`
  /// returns the failing inputs.
  std::optional<PassFailure> check(const passes::Pass& pass, const Graph& before,
                                   const Graph& after);
  const std::vector<Datum>& inputs_of_failure() const { return trials_[failed_trial_].inputs; }
  /// Returns the evaluation options.
  const reference::EvaluateOptions& how() const { return how_; }

 private:
  PassCheckOptions options_;
  reference::EvaluateOptions how_;
  std::vector<Trial> trials_;
  std::size_t failed_trial_ = 0;
};

}  // namespace tenon::testing
