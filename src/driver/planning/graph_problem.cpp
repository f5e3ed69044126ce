#include "driver/model_source.h"
#include "driver/planning/problem_of.h"
#include "ops/access.h"
#include "ops/analysis.h"
#include "ops/liveness.h"

#include <algorithm>

namespace tenon {
namespace {

constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);

double usual(const Dim& dim) { return usual_value(dim); }

}  // namespace

memory::Problem problem_of(const Graph& graph, const memory::Device& device) {
  memory::Problem problem;
  problem.name = graph.name;
  problem.link = device.link;
  IdMap<ValueId, std::uint32_t> value_of(0, kNone);
  for (ValueId input : graph.inputs()) {
    problem.fixed_bytes += static_cast<std::uint64_t>(held_bytes(graph, input));
  }
  for (NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    if (node.results.empty() || !node.results[0] || !graph.constant_of(node.results[0])) continue;
    problem.fixed_bytes += static_cast<std::uint64_t>(held_bytes(graph, node.results[0]));
  }
  for (NodeId id : running_nodes(graph)) {
    const Node& node = graph.node(id);
    memory::Item item;
    item.name = node.name;
    for (ValueId operand : node.operands) {
      const std::uint32_t value = operand ? value_of[operand] : kNone;
      if (value == kNone) continue;
      if (std::find(item.reads.begin(), item.reads.end(), value) != item.reads.end()) continue;
      item.reads.push_back(value);
    }
    for (ValueId result : node.results) {
      if (!result) continue;
      value_of[result] = static_cast<std::uint32_t>(problem.values.size());
      item.makes.push_back(value_of[result]);
      problem.values.push_back({graph.value(result).name,
                                static_cast<std::uint64_t>(held_bytes(graph, result)), false,
                                true});
    }
    if (item.name.empty() && !item.makes.empty()) item.name = problem.values[item.makes[0]].name;
    const bool is_pointwise = fusion_kind(graph, id) == Fusion::Elementwise;
    for (const std::uint32_t result : item.makes) {
      for (const std::uint32_t operand : item.reads) {
        if (is_pointwise && problem.values[operand].bytes == problem.values[result].bytes) {
          item.may_share.emplace_back(result, operand);
        }
      }
    }
    // What has an expression gives the same each time; random numbers and the like have none.
    item.may_repeat = !lowered(graph, id).empty();
    const Footprint footprint = footprint_of(graph, id);
    const double bytes = usual(footprint.bytes_read) + usual(footprint.bytes_written);
    item.ways.push_back({device.seconds(usual(footprint.flops), bytes),
                         static_cast<std::uint64_t>(inner_peak_bytes(graph, id))});
    problem.items.push_back(std::move(item));
  }
  for (ValueId output : graph.outputs()) {
    if (output && value_of[output] != kNone) problem.values[value_of[output]].is_output = true;
  }
  return problem;
}

PlanSource plan_source(const std::string& model, chainer::Reading reading,
                       const memory::Device& device, bool is_fused) {
  const ModelSource named(model);
  const LoadedDocument loaded = named.document();
  const std::string format = loaded.document ? loaded.format->name : "";
  if (format == "chainer" || format == "megengine") {
    const std::string text = loaded.document->text("");
    if (format == "megengine") {
      return {problem_of(megengine::parse_profile(text, model), model),
              "the run that the profile tells of",
              {},
              false};
    }
    const chainer::Tables tables = chainer::parse_tables(text, model);
    PlanSource found;
    found.problem = problem_of(tables, model, reading, device, 1, is_fused);
    found.note = is_fused ? "a training step, its functions fused"
                 : reading == chainer::Reading::Tags
                     ? "a training step, what backward needs by tags"
                     : "a training step, what backward needs as retained";
    for (const int parts : batch_parts(tables, model)) {
      found.split.emplace_back(parts, problem_of(tables, model, reading, device, parts, is_fused));
    }
    return found;
  }
  return {problem_of(loaded.document ? loaded.document->graph() : named.graph(), device),
          "the forward pass",
          {},
          false};
}

}  // namespace tenon
