#include "testing/verify/pass_check.h"

#include "base/error.h"
#include "base/text.h"
#include "ir/verify.h"
#include "reference/evaluate.h"
#include "testing/verify/agreement.h"
#include "testing/verify/trial_inputs.h"

#include <new>

namespace tenon::testing {
namespace {

using Kind = PassFailure::Kind;

// Gives each run the full limit of node runs.
reference::EvaluateOptions with_runs(reference::EvaluateOptions how) {
  if (how.node_runs_left) how.node_runs_left = std::make_shared<std::int64_t>(*how.node_runs_left);
  return how;
}

std::vector<std::string> names_of(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<std::string> names;
  for (ValueId value : values) names.push_back(graph.value(value).name);
  return names;
}

// The interface of a graph must not change: order, names and types of inputs and outputs.
std::optional<PassFailure> interface_change(const Graph& before, const Graph& after) {
  const auto differ = [&](const char* what, const std::vector<std::string>& was,
                          const std::vector<std::string>& is) {
    return PassFailure{Kind::ChangesInterface, what,
                       concat(join(is, ", "), " instead of ", join(was, ", "))};
  };
  const std::vector<std::string> inputs = names_of(before, before.inputs());
  if (const auto now = names_of(after, after.inputs()); now != inputs)
    return differ("the inputs", inputs, now);
  const std::vector<std::string> outputs = names_of(before, before.outputs());
  if (const auto now = names_of(after, after.outputs()); now != outputs)
    return differ("the outputs", outputs, now);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Type& was = before.value(before.inputs()[k]).type;
    const Type& is = after.value(after.inputs()[k]).type;
    if (was == is) continue;
    return PassFailure{Kind::ChangesInterface, concat("input '", inputs[k], "'"),
                       concat("type ", is, " instead of ", was)};
  }
  return std::nullopt;
}

std::optional<PassFailure> soundness_failure(const Graph& before, const Graph& after) {
  const std::vector<std::string> problems = problems_of(after);
  if (!problems.empty()) return PassFailure{Kind::BreaksGraph, "", problems.front()};
  return interface_change(before, after);
}

// Returns the failure of a pass's graph, if any, and its results in `actual`.
std::optional<PassFailure> result_failure(const passes::Pass& pass, const Graph& before,
                                          const Graph& after, const std::vector<Datum>& inputs,
                                          const std::vector<Datum>& expected,
                                          const reference::EvaluateOptions& how,
                                          std::vector<Datum>& actual) {
  try {
    actual = reference::evaluate(after, inputs, with_runs(how));
  } catch (const std::exception& error) {
    return PassFailure{Kind::RefusesInputs, "", concat("after it: ", error.what())};
  }
  if (pass.accuracy == passes::Accuracy::Narrows) return std::nullopt;
  Leeway leeway;
  if (pass.accuracy != passes::Accuracy::Exact) leeway = leeway_between(before, after);
  const auto different = difference_between(actual, expected, leeway, [&] {
    return disturbed_outputs(before, inputs, leeway.epsilon, with_runs(how));
  });
  if (!different) return std::nullopt;
  const std::string& name = before.value(before.outputs()[different->output]).name;
  return PassFailure{Kind::ChangesResult, concat("output '", name, "'"), different->what};
}

// Later attempts use simpler inputs: few distinct values for tensors that serve as indices or
// sizes.
TrialSettings settings_of(int trial, int attempt, std::uint64_t seed) {
  static constexpr TrialKind kinds[] = {TrialKind::Ordinary, TrialKind::Edges, TrialKind::Quiet,
                                        TrialKind::Sparse};
  const TrialKind kind = kinds[trial % 4];
  TrialSettings settings{
      kind, kind,
      seed + static_cast<std::uint64_t>(trial) * 1000 + static_cast<std::uint64_t>(attempt)};
  if (attempt >= 1) settings.integers = TrialKind::Ordinary;
  if (attempt >= 3) settings.floats = TrialKind::Ordinary;
  return settings;
}

constexpr int kAttempts = 6;

}  // namespace

std::optional<PassFailure> failure_of(const passes::Pass& pass, const Graph& graph,
                                      const std::vector<Datum>& inputs,
                                      const passes::PassOptions& options,
                                      const reference::EvaluateOptions& how) {
  const std::vector<Datum> expected = reference::evaluate(graph, inputs, with_runs(how));
  Graph after;
  try {
    after = pass.run(graph, options);
  } catch (const std::exception& error) {
    return PassFailure{Kind::Throws, "", error.what()};
  }
  if (auto failure = soundness_failure(graph, after)) return failure;
  std::vector<Datum> actual;
  return result_failure(pass, graph, after, inputs, expected, how, actual);
}

PassChecker::PassChecker(const Graph& graph, PassCheckOptions options)
    : options_(std::move(options)) {
  how_.thread_count = options_.thread_count;
  how_.node_runs_left = std::make_shared<std::int64_t>(options_.max_node_runs);
  how_.max_result_bytes = options_.max_result_bytes;
  how_.constants = std::make_shared<reference::ConstantCache>();
  std::string refusal;
  for (int trial = 0; trial < options_.trial_count; ++trial) {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      Trial made;
      try {
        made.inputs = trial_inputs(graph, settings_of(trial, attempt, options_.seed));
        made.outputs = reference::evaluate(graph, made.inputs, with_runs(how_));
      } catch (const Error& error) {
        refusal = error.what();
        continue;
      } catch (const std::bad_alloc&) {
        refusal = "out of memory";
        continue;
      }
      trials_.push_back(std::move(made));
      break;
    }
  }
  if (trials_.empty() && options_.trial_count > 0) {
    throw Error("no random inputs were found that the model runs on", ErrorKind::Usage)
        .got(refusal);
  }
}

std::optional<PassFailure> PassChecker::check(const passes::Pass& pass, const Graph& before,
                                              const Graph& after) {
  failed_trial_ = 0;
  if (auto failure = soundness_failure(before, after)) return failure;
  if (identical(before, after)) return std::nullopt;
  for (std::size_t k = 0; k < trials_.size(); ++k) {
    std::vector<Datum> actual;
    failed_trial_ = k;
    if (auto failure = result_failure(pass, before, after, trials_[k].inputs, trials_[k].outputs,
                                      how_, actual)) {
      return failure;
    }
    trials_[k].outputs = std::move(actual);
    if (options_.on_progress) options_.on_progress(k + 1, trials_.size());
  }
  return std::nullopt;
}

}  // namespace tenon::testing
