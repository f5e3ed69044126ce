#pragma once

#include "ops/evaluation.h"
#include "passes/pass.h"
#include "reference/evaluate.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// What a pass did wrong to a graph.
struct PassFailure {
  /// What kind of thing; reducing a graph keeps to one.
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
  /// Inputs on which more nodes would run, those in loops too, are replaced by others.
  std::int64_t max_node_runs = 200000;
  std::int64_t max_result_bytes = std::int64_t{4}  /// likewise, on which a tensor would be larger
                                  << 30;
  PassOptions pass_options;
  /// Called with the number of trials done of the graph a pass made.
  std::function<void(std::size_t done, std::size_t total)> on_progress;
};

/// Runs the pass over the graph and both on these inputs; nothing where it did well. Throws Error
/// where the graph itself does not run on them.
std::optional<PassFailure> failure_of(const Pass& pass, const Graph& graph,
                                      const std::vector<Datum>& inputs, const PassOptions& options,
                                      const reference::Options& how);

/// Runs graphs on a few sets of inputs, edge values among them, as passes change them. Inputs that
/// the first graph refuses are replaced by others.
class PassChecker {
 public:
  PassChecker(const Graph& graph, PassCheckOptions options);

  struct Trial {
    std::vector<Datum> inputs, outputs;
  };
  /// The sets of inputs that were found, with what the graph last seen gives on them.
  const std::vector<Trial>& trials() const { return trials_; }
  /// How many sets of inputs were found that the graph runs on.
  std::size_t trial_count() const { return trials_.size(); }
  /// Compares what a pass made of `before`, which is the graph last seen, with it.
  /// `inputs_of_failure` gives the inputs that show it.
  std::optional<PassFailure> check(const Pass& pass, const Graph& before, const Graph& after);
  const std::vector<Datum>& inputs_of_failure() const { return trials_[failed_trial_].inputs; }
  /// How it runs graphs.
  const reference::Options& how() const { return how_; }

 private:
  PassCheckOptions options_;
  reference::Options how_;
  std::vector<Trial> trials_;
  std::size_t failed_trial_ = 0;
};

}  // namespace tenon
