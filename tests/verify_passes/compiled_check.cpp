#include "compiled_check.h"

#include "base/error.h"
#include "base/text.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "host/compiled.h"
#include "program/verify.h"
#include "testing/verify/agreement.h"
#include "testing/verify/reduce.h"
#include "testing/verify/trial_inputs.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace tenon::testing {
namespace {

using Trial = testing::PassChecker::Trial;

// Relative to a tensor's largest magnitude.
constexpr double kWinogradError = 1e-4;
constexpr int kThreadCounts[] = {1, 2, 3, 7};

struct Failure {
  enum class Kind : std::uint8_t { Optimiser, Compiler, Run, Threads, Result };
  Kind kind = Kind::Result;
  std::string what;
  std::size_t trial = 0;
};

struct Settings {
  reference::EvaluateOptions how;
  bool allow_winograd = false;
  TargetSpec target = {};
};

// Each run has the full budget of node runs.
std::vector<Datum> outputs_of(const Graph& graph, const std::vector<Datum>& inputs,
                              reference::EvaluateOptions how) {
  if (how.node_runs_left) how.node_runs_left = std::make_shared<std::int64_t>(*how.node_runs_left);
  return reference::evaluate(graph, inputs, how);
}

// Bit for bit.
bool are_same(const Datum& a, const Datum& b) {
  if (a.kind() != b.kind()) return false;
  if (a.is_tensor()) return identical(a.tensor(), b.tensor());
  return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(),
                    are_same);
}

// Returns whether all extents are functions of the inputs' extents, and iteration counts do not
// depend on data.
bool has_known_work(const Graph& graph) {
  SymbolRanges known;
  for (ValueId input : graph.inputs()) {
    if (!graph.value(input).type.is_tensor()) return false;
    for (const Dim& dim : graph.value(input).type.tensor().dims) dim.collect_symbols(known);
  }
  for (NodeId id : graph.nodes_in_order()) {
    if (!graph.node(id).bodies.empty()) return false;
    for (ValueId result : graph.node(id).results) {
      if (!result) continue;
      if (!graph.value(result).type.is_tensor()) return false;
      SymbolRanges symbols;
      for (const Dim& dim : graph.value(result).type.tensor().dims) dim.collect_symbols(symbols);
      for (const auto& [symbol, range] : symbols) {
        if (!known.contains(symbol)) return false;
      }
    }
  }
  return true;
}

// Arbitrary invalid inputs, including indices far out of range, must end in an Error or a result,
// and never in a crash.
std::optional<Failure> failure_on_anything(const Graph& graph, CompiledModel& model) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    try {
      model.run(testing::trial_inputs(
          graph, {testing::TrialKind::Edges, testing::TrialKind::Edges, seed}));
    } catch (const Error&) {
      // the expected outcome
    } catch (const std::exception& error) {
      return Failure{Failure::Kind::Run, concat("on inputs of no sense: ", error.what())};
    }
  }
  return std::nullopt;
}

// Throws an Error (Unsupported) for a graph that has no program.
std::optional<Failure> failure_of(const Graph& graph, const std::vector<Trial>& trials,
                                  const Settings& settings) {
  Graph optimised;
  Program program;
  auto stage = Failure::Kind::Optimiser;
  try {
    optimised = driver::run_pipeline(graph, driver::pipeline_for(settings.target));
    stage = Failure::Kind::Compiler;
    codegen::CompileOptions options = driver::target_options(settings.target);
    options.allow_winograd = settings.allow_winograd;
    driver::PassServices services;
    services.verify_each = true;
    driver::NestObserver nests(options.target->nest_pass_list(), services);
    options.nest_passes = nests.options();
    program = codegen::compile(optimised, options).program;
    verify(program);
  } catch (const Error& error) {
    if (stage == Failure::Kind::Compiler && error.kind() == ErrorKind::Unsupported) throw;
    return Failure{stage, error.what()};
  } catch (const std::exception& error) {
    return Failure{stage, error.what()};
  }
  std::vector<CompiledModel> models;
  for (const int threads : kThreadCounts) models.emplace_back(program, threads);
  if (has_known_work(graph)) {
    if (auto failure = failure_on_anything(graph, models.front())) return failure;
  }
  testing::Leeway leeway = testing::leeway_between(graph, optimised);
  if (settings.allow_winograd)
    leeway.epsilon = std::max(leeway.epsilon, kWinogradError / testing::Leeway::roundings);
  for (std::size_t k = 0; k < trials.size(); ++k) {
    const Trial& trial = trials[k];
    std::vector<Datum> first;
    for (std::size_t m = 0; m < models.size(); ++m) {
      std::vector<Datum> outputs;
      try {
        outputs = models[m].run(trial.inputs);
      } catch (const std::exception& error) {
        return Failure{Failure::Kind::Run, error.what(), k};
      }
      if (m == 0) first = outputs;
      for (std::size_t n = 0; n < outputs.size(); ++n) {
        if (are_same(outputs[n], first[n])) continue;
        return Failure{
            Failure::Kind::Threads,
            concat("output '", graph.value(graph.outputs()[n]).name, "' on ", kThreadCounts[m],
                   " threads: ", testing::exact_difference(outputs[n], first[n])),
            k};
      }
    }
    const auto different = testing::difference_between(first, trial.outputs, leeway, [&] {
      return testing::disturbed_outputs(graph, trial.inputs, leeway.epsilon, settings.how);
    });
    if (!different) continue;
    const std::string& name = graph.value(graph.outputs()[different->output]).name;
    return Failure{Failure::Kind::Result, concat("output '", name, "': ", different->what), k};
  }
  return std::nullopt;
}

// Each node that is not compiled is a line of the message.
std::vector<std::string> reasons_in(const Error& error) {
  std::vector<std::string> reasons;
  for (const std::string& line : split(error.what(), '\n')) {
    const std::size_t op = line.find(" ("), reason = line.find("): ");
    if (op == std::string::npos || reason == std::string::npos) continue;
    reasons.push_back(concat(line.substr(op + 2, reason - op - 2), line.substr(reason + 1)));
  }
  if (reasons.empty()) reasons.push_back(error.summary());
  return reasons;
}

std::optional<Failure> failure_of(const testing::Reproducer& reproducer, const Settings& settings) {
  return failure_of(
      reproducer.graph,
      {{reproducer.inputs, outputs_of(reproducer.graph, reproducer.inputs, settings.how)}},
      settings);
}

bool is_finite(const Trial& trial) {
  return std::all_of(trial.inputs.begin(), trial.inputs.end(), [](const Datum& input) {
    if (!input.is_tensor() || !is_float(input.tensor().dtype())) return true;
    for (std::int64_t k = 0; k < input.tensor().size(); ++k) {
      if (!std::isfinite(input.tensor().real_at(k))) return false;
    }
    return true;
  });
}

std::string described(const Graph& graph, const std::vector<Trial>& trials, const Failure& failure,
                      const Settings& settings) {
  const auto shows = [&](const testing::Reproducer& reproducer) {
    const auto found = failure_of(reproducer, settings);
    return found && found->kind == failure.kind;
  };
  const testing::Reproducer smallest =
      reduce({graph, trials.at(failure.trial).inputs}, shows, settings.how);
  const auto last = failure_of(smallest, settings);
  return concat(last ? last->what : failure.what, "\n", testing::print_reproducer(smallest));
}

}  // namespace

CompiledCheck check_compiled(const Graph& graph, const testing::PassChecker& checker,
                             bool allow_winograd, const TargetSpec& target) {
  const Settings settings{checker.how(), allow_winograd, target};
  std::vector<Trial> trials = checker.trials();
  if (allow_winograd) std::erase_if(trials, [](const Trial& trial) { return !is_finite(trial); });
  try {
    const auto failure = failure_of(graph, trials, settings);
    if (!failure) return {};
    return {described(graph, trials, *failure, settings), {}};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Unsupported) throw;
    return {"", reasons_in(error)};
  }
}

}  // namespace tenon::testing
