#include "judge.h"

#include "base/error.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/schema/onnx.pb.h"
#include "host/compiled.h"
#include "program/verify.h"
#include "reference/evaluate.h"
#include "testing/verify/agreement.h"
#include "testing/verify/trial_inputs.h"

#include <map>
#include <optional>

namespace tenon::testing {
namespace {

// A mutant may contain an infinite loop or exceed the memory. Reductions stay short enough for
// f32's rounding to remain within the tolerance.
constexpr std::int64_t kMaxNodeRuns = 4000, kMaxResultBytes = 256 << 10,
                       kMaxNodeOperations = std::int64_t{1} << 28;

// Placeholder values for elements that fail: outputs that are equal under both do not depend on
// failed elements.
constexpr double kDefaultValues[] = {5, 100};

// One run: its outputs, or the reason of its refusal.
struct Outcome {
  std::vector<Datum> outputs;
  std::optional<std::string> refusal;
  bool is_over_limit = false;  // inconclusive
};

struct Trial {
  std::vector<Datum> inputs;
  Outcome expected;
};

reference::EvaluateOptions limits(std::optional<double> default_value = {}) {
  reference::EvaluateOptions options;
  options.default_value = default_value;
  options.thread_count = 1;
  options.node_runs_left = std::make_shared<std::int64_t>(kMaxNodeRuns);
  options.max_result_bytes = kMaxResultBytes;
  options.max_node_operations = kMaxNodeOperations;
  return options;
}

Outcome run_reference(const Graph& graph, const std::vector<Datum>& inputs,
                      std::optional<double> default_value = {}) {
  const reference::EvaluateOptions options = limits(default_value);
  try {
    return {reference::evaluate(graph, inputs, options), {}, false};
  } catch (const Error& error) {
    const bool is_over = *options.node_runs_left < 0 || error.kind() == ErrorKind::OutOfMemory ||
                         error.summary().find("than allowed") != std::string::npos;
    return {{}, error.what(), is_over};
  }
}

bool is_small(const Graph& graph) {
  for (NodeId id : graph.nodes_in_order()) {
    for (ValueId result : graph.node(id).results) {
      if (!result || !graph.value(result).type.is_tensor()) continue;
      const TensorType& type = graph.value(result).type.tensor();
      if (!all_constant(type.dims)) continue;
      double bytes = 16;
      for (const Dim& dim : type.dims) bytes *= static_cast<double>(dim.constant());
      if (bytes > 16.0 * kMaxResultBytes) return false;
    }
  }
  for (ValueId input : graph.inputs()) {
    const Type& type = graph.value(input).type;
    if (type.is_tensor() && all_constant(type.tensor().dims) &&
        !provably_at_most(byte_count(type.tensor()), kMaxResultBytes)) {
      return false;
    }
  }
  return true;
}

// A failing run is reported with its stage.
struct CompileStage : std::exception {
  explicit CompileStage(std::string text) : what_text(std::move(text)) {}
  const char* what() const noexcept override { return what_text.c_str(); }
  std::string what_text;
};

template <class Work>
auto during(const char* stage, const Work& work) {
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw CompileStage(concat(stage, ": ", error.what()));
  }
}

std::string result_difference(const Graph& graph, const Graph& optimised, const Trial& trial,
                              const Outcome& got, std::optional<double> default_value = {}) {
  const testing::Leeway leeway = testing::leeway_between(graph, optimised);
  const auto different =
      testing::difference_between(got.outputs, trial.expected.outputs, leeway, [&] {
        return testing::disturbed_outputs(graph, trial.inputs, leeway.epsilon,
                                          limits(default_value));
      });
  if (!different) return "";
  return concat("results differ: output '", graph.value(graph.outputs()[different->output]).name,
                "': ", different->what);
}

// An element that no output depends on may be skipped together with its errors: nodes may be
// eliminated from the optimised graph, and kernels compute only the elements that are read. So the
// program is right if its outputs equal those of the optimised graph for any placeholder of failed
// elements.
std::string taken_though_refused(const Graph& optimised, const Trial& trial, const Outcome& got) {
  for (const double default_value : kDefaultValues) {
    const Trial total{trial.inputs, run_reference(optimised, trial.inputs, default_value)};
    if (total.expected.refusal) {
      return concat("compiled takes what the reference refuses:\n", *trial.expected.refusal);
    }
    const std::string different =
        result_difference(optimised, optimised, total, got, default_value);
    if (!different.empty()) {
      return concat("compiled takes what the reference refuses, and an output depends on it:\n",
                    *trial.expected.refusal, "\n", different);
    }
  }
  return "";
}

std::string difference_of(const Graph& graph, const Graph& optimised, const Trial& trial,
                          const Outcome& got) {
  const std::optional<std::string>&wanted = trial.expected.refusal, &refusal = got.refusal;
  if (wanted && refusal) return "";
  if (wanted) return taken_though_refused(optimised, trial, got);
  if (refusal) return concat("compiled refuses what the reference takes:\n", *refusal);
  return result_difference(graph, optimised, trial, got);
}

Verdict judge_graph(Graph graph, std::uint64_t number) {
  graph.erase_dead();
  if (!is_small(graph)) return {Verdict::Kind::NotCompiled, ""};
  std::vector<Trial> trials;
  bool tells = false, runs = false;
  for (const auto& [floats, integers] :
       {std::pair(testing::TrialKind::Ordinary, testing::TrialKind::Ordinary),
        std::pair(testing::TrialKind::Quiet, testing::TrialKind::Quiet),
        std::pair(testing::TrialKind::Sparse, testing::TrialKind::Edges)}) {
    Trial trial{testing::trial_inputs(graph, {floats, integers, number + trials.size()}), {}};
    trial.expected = during("reference", [&] { return run_reference(graph, trial.inputs); });
    tells |= !trial.expected.is_over_limit;
    runs |= !trial.expected.refusal;
    trials.push_back(std::move(trial));
  }
  if (!tells) return {Verdict::Kind::NotCompiled, ""};
  Graph optimised;
  std::optional<CompiledModel> model;
  std::optional<std::string> refusal;
  try {
    optimised = during("optimiser", [&] { return driver::run_pipeline(graph, {}); });
    codegen::CompileOptions options = driver::cpu_options();
    options.allow_winograd = false;
    Program program =
        during("compiler", [&] { return codegen::compile(optimised, options).program; });
    during("program", [&] { verify(program); });
    model.emplace(std::move(program), 1);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Unsupported || error.kind() == ErrorKind::OutOfMemory) {
      return {Verdict::Kind::NotCompiled, ""};
    }
    refusal = concat("while compiling: ", error.what());
    if (runs) return {Verdict::Kind::Failed, *refusal};
  }
  for (const Trial& trial : trials) {
    if (trial.expected.is_over_limit) continue;
    Outcome got{{}, refusal, false};
    if (model) {
      try {
        got.outputs = during("run", [&] { return model->run(trial.inputs); });
      } catch (const Error& error) {
        got.refusal = error.what();
      }
    }
    const std::string different = difference_of(graph, optimised, trial, got);
    if (!different.empty()) return {Verdict::Kind::Failed, different};
  }
  return {runs ? Verdict::Kind::Agreed : Verdict::Kind::Refused, ""};
}

}  // namespace

namespace {

// Gives each named extent a number, the same for every occurrence of the name.
void number_symbols(onnx_schema::ModelProto& model) {
  std::map<std::string, std::int64_t> numbers;
  for (auto& input : *model.mutable_graph()->mutable_input()) {
    if (!input.type().has_tensor_type()) continue;
    for (auto& dim : *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) {
      if (dim.has_dim_value()) continue;
      const auto next = static_cast<std::int64_t>(numbers.size() % 4) + 2;
      dim.set_dim_value(numbers.emplace(dim.dim_param(), next).first->second);
    }
  }
}

}  // namespace

Mutant make_mutant(const Seeds& seeds, std::uint64_t number) {
  testing::Random random(number * 0x9e3779b97f4a7c15U + 12345);
  const Seeds::Model seed = seeds.pick(random);
  onnx_schema::ModelProto model;
  TENON_ASSERT(model.ParseFromString(seed.bytes), concat(seed.name, " is a model"));
  Mutant mutant{seed.name, {}, {}};
  if (!seeds.keeps_symbols) number_symbols(model);
  mutant.changes = mutate(model, seeds.pool, random);
  mutant.bytes = model.SerializeAsString();
  return mutant;
}

Verdict judge(const std::string& model, std::uint64_t number) {
  try {
    std::optional<Graph> graph;
    try {
      graph = during("import",
                     [&] { return frontends::onnx::import_onnx(std::as_bytes(std::span(model))); });
    } catch (const Error&) {
      return {Verdict::Kind::NotImported, ""};
    }
    return judge_graph(*std::move(graph), number);
  } catch (const CompileStage& stage) {
    return {Verdict::Kind::Failed, stage.what_text};
  } catch (const std::exception& error) {
    return {Verdict::Kind::Failed, concat("unexpected: ", error.what())};
  }
}

}  // namespace tenon::testing
