#include "passes/quantize/equalise.h"

#include "ops/definition/registry.h"

#include <algorithm>
#include <cmath>

namespace tenon::passes {
namespace {

// Positively homogeneous ops: scaling a channel of the input by s > 0 scales that channel of the
// result.
constexpr std::string_view kHomogeneous[] = {"relu",         "leaky_relu", "max_pool",
                                             "average_pool", "identity",   "reduce_mean"};

ValueId put_constant(Graph& graph, NodeId reader, std::size_t position, Tensor value) {
  const std::string name = graph.value(graph.node(reader).operands[position]).name;
  Graph::NewNode node;
  node.op = &find_op("constant");
  node.attrs.set("value", Constant(std::move(value)));
  node.results = {graph.free_name(name)};
  const ValueId made = graph.node(graph.add_node(std::move(node), reader)).results.front();
  graph.set_operand(reader, position, made);
  return made;
}

const Constant* weights_of(const Graph& graph, NodeId product) {
  const Node& node = graph.node(product);
  const Constant* weights = graph.constant_of(node.operands[1]);
  if (weights == nullptr || weights->dtype() != DType::F32) return nullptr;
  const TensorType& type = graph.value(node.operands[1]).type.tensor();
  const TensorType& image = graph.value(node.operands[0]).type.tensor();
  const AttrValue* groups = node.attrs.find("groups");
  const bool is_grouped = groups && !(std::get<Dim>(*groups) == Dim(1));
  const bool is_plain = type.layout.is_empty() && image.layout.is_empty() && type.rank() == 4;
  return is_plain && !is_grouped ? weights : nullptr;
}

// Returns the convolution that alone reads the value, through homogeneous ops only.
NodeId next_convolution(const Graph& graph, ValueId value) {
  for (;;) {
    if (graph.is_output(value) || graph.readers(value).size() != 1) return {};
    const NodeId reader = graph.readers(value).front();
    const std::string_view op = graph.op_name(reader);
    if (op == "conv") return graph.node(reader).operands[0] == value ? reader : NodeId();
    if (std::ranges::find(kHomogeneous, op) == std::end(kHomogeneous)) return {};
    const std::vector<ValueId>& results = graph.node(reader).results;
    if (std::ranges::count_if(results, [](ValueId result) { return bool(result); }) != 1) return {};
    value = results.front();
    if (graph.value(value).type.tensor().rank() != 4) return {};
  }
}

// Returns the largest magnitudes of an OIHW weight along one of its first two axes.
std::vector<double> largest_along(const Tensor& weights, std::size_t axis) {
  const Shape& shape = weights.shape();
  std::vector<double> largest(static_cast<std::size_t>(shape[axis]), 0);
  const std::int64_t inner = axis == 0 ? weights.size() / shape[0] : shape[2] * shape[3];
  const std::span<const float> elements = weights.as<float>();
  for (std::int64_t k = 0; k < weights.size(); ++k) {
    double& most = largest[static_cast<std::size_t>(k / inner % shape[axis])];
    most = std::max(most, std::abs(double{elements[static_cast<std::size_t>(k)]}));
  }
  return largest;
}

void scale_along(Tensor& weights, std::size_t axis, const std::vector<double>& factors) {
  const Shape shape = weights.shape();
  const std::int64_t inner = axis == 0 ? weights.size() / shape[0] : shape[2] * shape[3];
  const std::span<float> elements = weights.as_mutable<float>();
  for (std::int64_t k = 0; k < weights.size(); ++k) {
    float& element = elements[static_cast<std::size_t>(k)];
    element = static_cast<float>(double{element} *
                                 factors[static_cast<std::size_t>(k / inner % shape[axis])]);
  }
}

bool equalise(Graph& graph, NodeId first, NodeId second) {
  const Constant *a = weights_of(graph, first), *b = weights_of(graph, second);
  const bool has_bias = graph.node(first).operands.size() > 2 && graph.node(first).operands[2];
  const Constant* bias = has_bias ? graph.constant_of(graph.node(first).operands[2]) : nullptr;
  if (!a || !b || (has_bias && (!bias || bias->dtype() != DType::F32))) return false;
  Tensor left = a->materialise(), right = b->materialise();
  const std::vector<double> outputs = largest_along(left, 0), inputs = largest_along(right, 1);
  if (outputs.size() != inputs.size()) return false;
  std::vector<double> smaller(outputs.size(), 1), larger(outputs.size(), 1);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (outputs[k] == 0 || inputs[k] == 0) continue;  // the channel is dead
    constexpr double kMost = 64;  // a larger factor would let biases dominate the range
    larger[k] = std::clamp(std::sqrt(outputs[k] / inputs[k]), 1 / kMost, kMost);
    smaller[k] = 1 / larger[k];
  }
  scale_along(left, 0, smaller);
  scale_along(right, 1, larger);
  if (has_bias) {
    Tensor shifted = bias->materialise();
    for (std::int64_t k = 0; k < shifted.size(); ++k)
      shifted.set_real(k, shifted.real_at(k) * smaller[static_cast<std::size_t>(k)]);
    put_constant(graph, first, 2, std::move(shifted));
  }
  put_constant(graph, first, 1, std::move(left));
  put_constant(graph, second, 1, std::move(right));
  return true;
}

}  // namespace

Equalised equalise_channels(Graph graph) {
  Equalised made;
  for (const NodeId id : graph.nodes_in_order()) {
    if (graph.op_name(id) != "conv" || !weights_of(graph, id)) continue;
    const NodeId next = next_convolution(graph, graph.node(id).results.front());
    if (!next || !weights_of(graph, next) || !equalise(graph, id, next)) continue;
    made.pairs.emplace_back(graph.value(graph.node(id).results.front()).name,
                            graph.value(graph.node(next).results.front()).name);
  }
  graph.erase_dead();
  made.graph = std::move(graph);
  return made;
}

std::size_t change_biases(Graph& graph, const std::vector<BiasChange>& changes) {
  std::size_t count = 0;
  for (const BiasChange& change : changes) {
    const ValueId result = graph.find(change.product);
    const NodeId product = graph.value(result).producer;
    NodeId node = product;
    std::size_t position = 2;
    if (graph.op_name(product) == "matmul") {
      if (graph.readers(result).size() != 1 || graph.is_output(result)) continue;
      node = graph.readers(result).front();
      if (graph.op_name(node) != "add") continue;
      position = graph.node(node).operands[0] == result ? 1 : 0;
    }
    if (graph.node(node).operands.size() <= position || !graph.node(node).operands[position])
      continue;
    const Constant* bias = graph.constant_of(graph.node(node).operands[position]);
    if (bias == nullptr || bias->dtype() != DType::F32 || bias->shape().size() != 1 ||
        bias->size() != static_cast<std::int64_t>(change.amounts.size()))
      continue;
    Tensor value = bias->materialise();
    for (std::int64_t k = 0; k < value.size(); ++k)
      value.set_real(k, value.real_at(k) + change.amounts[static_cast<std::size_t>(k)]);
    put_constant(graph, node, position, std::move(value));
    ++count;
  }
  graph.erase_dead();
  return count;
}

}  // namespace tenon::passes
