#include "driver/explain.h"

#include "app/pass_selection.h"
#include "app/targets.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/table.h"
#include "cli/tuning.h"
#include "distributed/mesh.h"
#include "models/model.h"
#include "passes/shard/shard.h"
#include "passes/train/train.h"
#include "train/trainer.h"
#include "tune/tuner.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ExplainOptions : app::PassSelection {
  std::string model, node;
  /// mesh of training ranks: explains the node's sharding there
  std::string parallel;
  /// batch of that training
  std::int64_t batch = 32;
  bool untuned = false;
  std::vector<std::string> preferred;
  std::string target, precision;
};

void print_json(const driver::Explanation& explanation) {
  Json json = {{"name", explanation.name}, {"op", explanation.op}, {"type", explanation.type}};
  json["passes"] = Json::array();
  for (const driver::Explanation::Step& step : explanation.steps) {
    json["passes"].push_back({{"pass", step.pass}, {"says", step.text}});
  }
  json["end"] = Json();
  if (!explanation.end_op.empty()) {
    json["end"] = {{"op", explanation.end_op}, {"type", explanation.end_type}};
    if (!explanation.group.empty()) {
      json["end"]["group"] = {{"name", explanation.group}, {"members", explanation.members}};
    }
  }
  json["kernels"] = Json::array();
  for (const driver::Explanation::Kernel& kernel : explanation.kernels) {
    Json candidates = Json::array();
    for (const auto& [name, text] : kernel.candidates)
      candidates.push_back({{"candidate", name}, {"says", text}});
    json["kernels"].push_back({{"name", kernel.name}, {"candidates", std::move(candidates)}});
  }
  out() << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

std::string end_text(const driver::Explanation& explanation) {
  if (explanation.end_op.empty()) return "it is not in the graph any more";
  const std::string what = concat(explanation.end_op, ", ", explanation.end_type);
  if (explanation.group.empty()) return what;
  return concat(what, ", in the group '", explanation.group, "' of ",
                join(explanation.members, ", "));
}

}  // namespace

namespace {

// Explains the sharding of a node over tensor-parallel ranks.
int explain_on_ranks(const ExplainOptions& options, OutputFormat format) {
  const distributed::Mesh mesh = distributed::parse_mesh(options.parallel);
  passes::TrainOptions settings;
  settings.micro_batches = mesh.data;
  if (options.batch % mesh.data != 0) {
    throw Error("the batch size is not a multiple of the number of micro-batches", ErrorKind::Usage)
        .expected("--batch as a multiple of ", mesh.data)
        .got(options.batch);
  }
  const Graph model =
      train::with_batch(models::load_model(options.model), options.batch / mesh.data);
  const passes::StatefulGraph step = tenon::passes::train(model, settings);
  passes::Remarks remarks;
  shard(step, {mesh.tensor, mesh.data, {}}, &remarks);
  std::vector<std::string> names;
  std::string found;
  for (NodeId id : step.graph.nodes_in_order()) {
    const Node& node = step.graph.node(id);
    const auto first = std::ranges::find_if(node.results, [](ValueId v) { return bool(v); });
    if (first == node.results.end()) continue;
    const std::string& name = step.graph.value(*first).name;
    names.push_back(name);
    const bool is_result = std::ranges::any_of(
        node.results, [&](ValueId v) { return v && step.graph.value(v).name == options.node; });
    if (is_result || (!node.name.empty() && node.name == options.node)) found = name;
  }
  if (found.empty()) {
    throw Error(concat("the step of training has no node '", options.node, "'"), ErrorKind::Usage)
        .hint(suggest_name(options.node, names));
  }
  if (format == OutputFormat::Json) {
    Json json = {{"name", found}, {"parallel", options.parallel}, {"passes", Json::array()}};
    for (const passes::Remarks::Entry& entry : remarks.about(found))
      json["passes"].push_back({{"pass", entry.pass}, {"says", entry.text}});
    out() << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return 0;
  }
  Table table({"pass", "decision"});
  for (const passes::Remarks::Entry& entry : remarks.about(found))
    table.add({entry.pass, entry.text});
  table.print(out());
  return 0;
}

int explain(const ExplainOptions& options, OutputFormat format) {
  if (!options.parallel.empty()) return explain_on_ranks(options, format);
  // The same passes and kernels as `compile`.
  driver::CompileRequest request;
  request.target = app::target_of(options.target, "native", options.precision);
  request.is_untuned = options.untuned;
  request.preferred = options.preferred;
  const driver::PipelineOptions settings =
      app::pipeline_of(options, driver::pipeline_for(request.target));
  const Graph graph = models::load_model(options.model);
  const driver::Explanation explanation =
      tenon::driver::explain(graph, options.node, settings, options_tuned(graph, request));
  if (format == OutputFormat::Json) {
    print_json(explanation);
    return 0;
  }
  if (explanation.op.empty()) {
    out() << explanation.name << ": created by a pass\n\n";
  } else {
    out() << explanation.name << ": " << explanation.op << ", " << explanation.type << "\n\n";
  }
  Table table({"pass", "decision"});
  for (const driver::Explanation::Step& step : explanation.steps) table.add({step.pass, step.text});
  table.add({"(after all)", end_text(explanation)});
  table.print(out());
  for (const driver::Explanation::Kernel& kernel : explanation.kernels) {
    out() << "\n";
    Table candidates({concat("kernel ", kernel.name), "decision"});
    for (const auto& [name, text] : kernel.candidates) candidates.add({name, text});
    candidates.print(out());
  }
  return 0;
}

}  // namespace

void add_explain(Commands& commands) {
  const auto [app, options] = commands.add<ExplainOptions>(
      "explain", "Explain the decisions of passes and kernel selection about a node", explain);
  app.add_option("model", options.model, kModelHelp)->required();
  app.add_option("node", options.node, "name of a node or of its result")->required();
  app.add_option("--target", options.target, "cpu (default) or cuda[:sm_90a]");
  add_precision(app, options.precision);
  add_untuned(app, options.untuned);
  add_preferred(app, options.preferred);
  auto* parallel =
      app.add_option("--parallel", options.parallel,
                     "tensor:N: sharding of the node over N tensor-parallel ranks, with reasons");
  app.add_option("--batch", options.batch, "samples in a batch, with --parallel")
      ->check(CLI::PositiveNumber)
      ->needs(parallel);
  app.add_option("--passes", options.passes, "the passes to run, in this order")->delimiter(',');
  app.add_option("--without", options.without, "passes to leave out")->delimiter(',');
  app.add_option("--stop-after", options.stop_after, "the last pass to run");
  app.add_option("--set", options.set, "PASS.OPTION=VALUE, as in fuse.mode=relay")->delimiter(',');
}

}  // namespace tenon::cli
