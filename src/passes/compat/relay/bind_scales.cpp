#include "base/error.h"
#include "ops/definition/registry.h"
#include "passes/compat/relay/forward_rewrite.h"
#include "passes/compat/relay/stages.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

namespace tenon::passes::relay_quantize {

float weight_scale(const Graph& graph, NodeId quantizer, const Config& config) {
  const Constant* weights = graph.constant_of(graph.node(quantizer).operands.front());
  if (weights == nullptr) {
    throw Error("quantize: a weight that is to be quantized is no constant", ErrorKind::Unsupported)
        .at(graph.location(quantizer));
  }
  const Tensor elements = weights->materialise();
  float largest = 0;
  for (const float element : elements.as<float>()) largest = std::max(largest, std::abs(element));
  if (!std::isfinite(largest)) {
    throw Error("quantize: a weight is not finite").at(graph.location(quantizer)).got(largest);
  }
  if (largest == 0) return 1;
  return config.weight_scale == "max" ? largest : std::exp2(std::ceil(std::log2(largest)));
}

Graph bind_scales(const Graph& graph, const std::vector<float>& scales, const Config& config) {
  const std::vector<NodeId> nodes = quantizers(graph);
  TENON_ASSERT(nodes.size() == scales.size(), "there is a scale for each quantizer");
  std::unordered_map<ValueId, float> bound;
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    const float valid = std::exp2(static_cast<float>(config.bits(kind_of(graph, nodes[k])) - 1));
    const std::vector<ValueId>& operands = graph.node(nodes[k]).operands;
    bound[operands[1]] = scales[k] / valid;
    bound[operands[2]] = 1 - valid;
    bound[operands[3]] = valid - 1;
  }
  ForwardRules rules;
  rules.bind_input = [&](const Graph&, ValueId input) -> std::optional<Constant> {
    const auto number = bound.find(input);
    if (number == bound.end()) return std::nullopt;
    return Constant(Tensor::scalar(DType::F32, number->second));
  };
  return ForwardRewriter(graph, rules).run();
}

Graph profile_graph(const Graph& graph, const std::vector<NodeId>& watched) {
  Graph profile = graph;
  std::vector<ValueId> outputs;
  for (const NodeId id : watched) outputs.push_back(profile.node(id).results.front());
  std::set<ValueId> numbers;  // placeholders, which are not read
  for (const NodeId id : quantizers(graph)) {
    const std::vector<ValueId>& operands = graph.node(id).operands;
    numbers.insert(operands.begin() + 1, operands.end());
    profile.set_attribute(id, "kind", std::string(name_of(QuantizerKind::Identity)));
  }
  profile.set_outputs(outputs);
  ForwardRules rules;
  rules.bind_input = [&](const Graph&, ValueId input) -> std::optional<Constant> {
    if (!numbers.contains(input)) return std::nullopt;
    return Constant(Tensor::scalar(DType::F32, 1));
  };
  return ForwardRewriter(profile, rules).run();
}

}  // namespace tenon::passes::relay_quantize
