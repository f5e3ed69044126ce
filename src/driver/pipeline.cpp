#include "driver/pipeline.h"

#include "base/error.h"
#include "base/text.h"
#include "driver/targets.h"
#include "ir/constraint.h"
#include "ir/verify.h"
#include "testing/verify/pass_check.h"
#include "testing/verify/reduce.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>

namespace tenon::driver {
namespace {

using OpCounts = std::map<std::string, std::int64_t>;

void count_ops(const Graph& graph, OpCounts& counts) {
  for (NodeId id : graph.nodes_in_order()) {
    ++counts[graph.node(id).op->name];
    for (const Graph& body : graph.node(id).bodies) count_ops(body, counts);
  }
}

std::size_t total_of(const OpCounts& counts) {
  std::int64_t total = 0;
  for (const auto& [op, count] : counts) total += count;
  return static_cast<std::size_t>(total);
}

std::string change_between(const OpCounts& before, const OpCounts& after, bool is_identical) {
  if (is_identical) return "nothing";
  OpCounts change = after;
  for (const auto& [op, count] : before) change[op] -= count;
  std::vector<std::pair<std::string, std::int64_t>> changed;
  for (const auto& [op, count] : change) {
    if (count != 0) changed.emplace_back(op, count);
  }
  std::stable_sort(changed.begin(), changed.end(), [](const auto& a, const auto& b) {
    return std::abs(a.second) > std::abs(b.second);
  });
  std::vector<std::string> parts;
  for (const auto& [op, count] : changed)
    parts.push_back(concat(op, count > 0 ? " +" : " ", count));
  return parts.empty() ? "attributes, types or order" : join(parts, ", ");
}

std::string sentence_of(const passes::Pass& pass, testing::PassFailure::Kind kind) {
  switch (kind) {
    case testing::PassFailure::Kind::Throws:
      return concat("pass '", pass.name, "' fails");
    case testing::PassFailure::Kind::BreaksGraph:
      return concat("pass '", pass.name, "' gives a broken graph");
    case testing::PassFailure::Kind::ChangesInterface:
      return concat("pass '", pass.name, "' changes the graph's inputs or outputs");
    case testing::PassFailure::Kind::RefusesInputs:
      return concat("pass '", pass.name,
                    "' gives a graph that refuses what the graph before it took");
    case testing::PassFailure::Kind::ChangesResult:
      return concat("pass '", pass.name, "' changes a result");
  }
  return "";
}

[[noreturn]] void refuse(const passes::Pass& pass, const testing::PassFailure& failure,
                         const Graph& before, const testing::PassChecker& checker,
                         const PipelineOptions& options) {
  passes::PassOptions quiet = options.pass_options;
  quiet.remarks = nullptr;
  const auto shows = [&](const testing::Reproducer& tried) {
    const auto again = testing::failure_of(pass, tried.graph, tried.inputs, quiet, checker.how());
    return again && again->kind == failure.kind;
  };
  testing::Reproducer smallest{before, checker.inputs_of_failure()};
  // A failure that the extracted graph does not reproduce cannot be reduced.
  if (shows(smallest)) smallest = reduce(std::move(smallest), shows, checker.how());
  const auto last =
      testing::failure_of(pass, smallest.graph, smallest.inputs, quiet, checker.how());
  throw Error(sentence_of(pass, failure.kind), ErrorKind::ComparisonFailed)
      .at(failure.where)
      .got(failure.what)
      .hint("the smallest graph found that shows it (", last ? last->what : "as a whole", "):\n",
            testing::print_reproducer(smallest));
}

const PassPosition kStandardPasses[] = {
    {"lower-qdq", "first of all: otherwise dequantized weights would be folded to floats"},
    {"fold-constants", "before rules, which rely on static and symbolic shapes"},
    {"simplify", "before patterns, which expect the canonical form"},
    {"recognise", "after simplify, before folding hides the patterns"},
    {"fold-constants", "folds new constants of the two"},
    {"fold-scales", "computed scales are constants by now"},
    {"fold-batch-reductions", "after all pattern matching of products"},
    {"choose-layouts", "before fuse: a transpose inside a group would split it"},
    {"simplify", "transposes and reshapes that became adjacent"},
    {"fuse", "after all pattern matching: a group hides its members"},
    {"order", "last: nodes and lifetimes are final"},
};
// Verification takes as long as a pass: larger graphs are verified only after all passes.
constexpr std::size_t kVerifiedEachTime = 50'000;

class PipelineRunner {
 public:
  PipelineRunner(const Graph& graph, const PipelineOptions& options) : options_(options) {
    if (!options.verify_each) return;
    testing::PassCheckOptions settings;
    settings.trial_count = options.verify_trials;
    settings.seed = options.verify_seed;
    settings.thread_count = options.thread_count;
    settings.max_node_runs = options.verify_node_runs;
    settings.max_result_bytes = options.verify_result_bytes;
    settings.pass_options = options.pass_options;
    if (options.on_verified) {
      settings.on_progress = [this](std::size_t done, std::size_t total) {
        options_.on_verified(pass_, done, total);
      };
    }
    checker_ = std::make_unique<testing::PassChecker>(graph, std::move(settings));
  }

  Graph run(const passes::Pass& pass, Graph graph) {
    pass_ = pass.name;
    const bool compares = checker_ || options_.on_pass;
    const Graph before = compares ? graph : Graph();
    const auto start = std::chrono::steady_clock::now();
    Graph after;
    try {
      after = pass.run(std::move(graph), options_.pass_options);
    } catch (const std::exception& error) {
      if (!checker_) throw;
      refuse(pass, {testing::PassFailure::Kind::Throws, "", error.what()}, before, *checker_,
             options_);
    }
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    if (!checker_) {
      if (after.node_count() <= kVerifiedEachTime) verify(after);
    } else if (const auto failure = checker_->check(pass, before, after)) {
      refuse(pass, *failure, before, *checker_, options_);
    }
    if (options_.on_pass) {
      OpCounts was, is;
      count_ops(before, was);
      count_ops(after, is);
      options_.on_pass({pass.name, elapsed.count(), total_of(was), total_of(is),
                        change_between(was, is, identical(before, after))},
                       after);
    }
    return after;
  }

 private:
  const PipelineOptions& options_;
  std::unique_ptr<testing::PassChecker> checker_;
  std::string pass_;
};

}  // namespace

std::vector<std::string> standard_passes() {
  std::vector<std::string> names;
  for (const PassPosition& pass : kStandardPasses) names.emplace_back(pass.name);
  return names;
}

std::vector<PassPosition> positions_for(const Target& target, TargetSpec::Precision precision) {
  std::vector<PassPosition> list(std::begin(kStandardPasses), std::end(kStandardPasses));
  std::vector<PassChange> changes = target.graph_pipeline();
  using enum TargetSpec::Precision;
  if (precision == F16 || precision == BF16) {
    changes.push_back(
        {"assign-precision", "fold-scales", "after scale folding, which needs full precision"});
  }
  for (const PassChange& change : changes) {
    if (change.after.empty()) {
      std::erase_if(list, [&](const PassPosition& each) { return each.name == change.pass; });
      continue;
    }
    const auto before = std::ranges::find(list, change.after, &PassPosition::name);
    TENON_ASSERT(before != list.end(), "a pass is inserted after one of the list");
    list.insert(before + 1, {change.pass, change.reason});
  }
  return list;
}

PipelineOptions pipeline_for(const Target& target, TargetSpec::Precision precision) {
  PipelineOptions options;
  options.pass_options.target = target.facts();
  if (precision == TargetSpec::Precision::BF16) options.pass_options.assign_precision_to = "bf16";
  for (PassPosition& pass : positions_for(target, precision))
    options.passes.push_back(std::move(pass.name));
  return options;
}

PipelineOptions pipeline_for(const TargetSpec& spec) {
  return pipeline_for(*make_target(spec), spec.precision);
}

std::vector<passes::Pass> chosen_passes(const PipelineOptions& options) {
  const std::vector<std::string> names =
      options.passes.empty() ? standard_passes() : options.passes;
  const auto refuse_unless_run = [&](const std::string& name, const char* option) {
    passes::find_pass(name);
    if (std::find(names.begin(), names.end(), name) != names.end()) return;
    throw Error(concat(option, ": '", name, "' is not among the passes that run"), ErrorKind::Usage)
        .expected("one of ", join(names, ", "));
  };
  for (const std::string& name : options.without) refuse_unless_run(name, "--without");
  if (!options.stop_after.empty()) refuse_unless_run(options.stop_after, "--stop-after");
  std::vector<passes::Pass> passes;
  for (const std::string& name : names) {
    const passes::Pass& pass = passes::find_pass(name);
    const bool is_left_out =
        std::find(options.without.begin(), options.without.end(), name) != options.without.end();
    if (!is_left_out) passes.push_back(pass);
    if (name == options.stop_after) break;
  }
  return passes;
}

Graph run_passes(Graph graph, std::span<const passes::Pass> passes,
                 const PipelineOptions& options) {
  keep_constraints(graph);  // before any pass rewrites a node with a requirement
  PipelineRunner runner(graph, options);
  for (const passes::Pass& pass : passes) {
    try {
      graph = runner.run(pass, std::move(graph));
    } catch (PlacedError& error) {
      error.locate(concat("pass '", pass.name, "'"));
      throw;
    }
  }
  if (!options.verify_each && graph.node_count() > kVerifiedEachTime) verify(graph);
  return graph;
}

Graph run_pipeline(Graph graph, const PipelineOptions& options) {
  return run_passes(std::move(graph), chosen_passes(options), options);
}

}  // namespace tenon::driver
