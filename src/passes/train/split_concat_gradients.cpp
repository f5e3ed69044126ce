#include "ops/definition/registry.h"
#include "passes/train/step_builder.h"

#include <algorithm>

namespace tenon::passes::training {
namespace {

// Fewer channels do not justify a separate kernel; nor do more parts.
constexpr std::int64_t kFewestChannels = 32;
constexpr std::size_t kMostParts = 4;

bool is_in_order(const Graph& graph, ValueId value, const char* order) {
  const Type& type = graph.value(value).type;
  if (!type.is_tensor() || type.tensor().rank() != 4) return false;
  const Layout& layout = type.tensor().layout;
  return layout.is_empty() || layout.text() == order;
}

bool has_groups(const Node& node) {
  const AttrValue* groups = node.attrs.find("groups");
  return groups && !(std::get<Dim>(*groups) == Dim(1));
}

bool may_split(const Graph& graph, NodeId split, NodeId product) {
  const Node &parts = graph.node(split), &node = graph.node(product);
  const ValueId whole = node.results.front(), weights = node.operands[*node.op->operand_index("w")];
  if (graph.readers(whole).size() != 1 || graph.is_output(whole)) return false;
  if (node.operands.size() > 2 && node.operands[2]) return false;  // a gradient has no bias
  if (has_groups(node)) return false;
  if (graph.constant_of(weights) || !is_in_order(graph, weights, "OIHW") ||
      !is_in_order(graph, whole, "NCHW"))
    return false;
  if (!(std::get<Dim>(*parts.attrs.find("axis")) == Dim(1)) || parts.results.size() > kMostParts)
    return false;
  for (ValueId part : parts.results) {
    if (!part) return false;
    const Dim channels = graph.value(part).type.tensor().dims[1];
    if (!channels.is_constant() || channels.constant() < kFewestChannels) return false;
  }
  return true;
}

void part(Graph& graph, NodeId split, NodeId product) {
  const Node parts = graph.node(split), node = graph.node(product);
  const std::size_t position = *node.op->operand_index("w");
  std::int64_t begin = 0;
  for (ValueId result : parts.results) {
    const std::int64_t end = begin + graph.value(result).type.tensor().dims[1].constant();
    Graph::NewNode slice{&find_op("slice"), {node.operands[position]}, {}, {}, {""}, ""};
    slice.attrs.set("starts", Dims{begin});
    slice.attrs.set("ends", Dims{end});
    slice.attrs.set("axes", Dims{1});
    Graph::NewNode piece{node.op, node.operands, node.attrs, {}, {""}, node.name};
    piece.operands[position] = graph.node(graph.add_node(std::move(slice), split)).results.front();
    const ValueId made = graph.node(graph.add_node(std::move(piece), split)).results.front();
    graph.set_type(made, graph.value(result).type);
    graph.replace_uses(result, made);
    graph.swap_names(result, made);
    begin = end;
  }
  graph.erase(split);
  graph.erase(product);
}

bool may_part_weights(const Graph& graph, NodeId join, NodeId product) {
  const Node &parts = graph.node(join), &node = graph.node(product);
  if (has_groups(node) || parts.operands.size() > kMostParts || parts.operands.size() < 2 ||
      !(std::get<Dim>(*parts.attrs.find("axis")) == Dim(1)) ||
      !is_in_order(graph, node.results.front(), "OIHW"))
    return false;
  return std::ranges::all_of(parts.operands, [&](ValueId operand) {
    if (!is_in_order(graph, operand, "NCHW")) return false;
    const Dim channels = graph.value(operand).type.tensor().dims[1];
    return channels.is_constant() && channels.constant() >= kFewestChannels;
  });
}

void part_weights(Graph& graph, NodeId join, NodeId product) {
  const Node parts = graph.node(join), node = graph.node(product);
  Graph::NewNode whole{&find_op("concat"), {}, {}, {}, {""}, ""};
  whole.attrs.set("axis", Dim(1));
  for (ValueId operand : parts.operands) {
    Graph::NewNode piece{node.op, node.operands, node.attrs, {}, {""}, node.name};
    piece.operands[*node.op->operand_index("x")] = operand;
    whole.operands.push_back(graph.node(graph.add_node(std::move(piece), product)).results.front());
  }
  const ValueId made = graph.node(graph.add_node(std::move(whole), product)).results.front();
  const ValueId result = node.results.front();
  graph.set_type(made, graph.value(result).type);
  graph.replace_uses(result, made);
  graph.swap_names(result, made);
  graph.erase(product);
}

}  // namespace

void split_concat_gradients(Graph& graph) {
  const auto is = [&](NodeId id, const char* op) { return id && graph.op_name(id) == op; };
  for (NodeId id : graph.nodes_in_order()) {
    const NodeId from = graph.node(id).operands.empty() || !graph.node(id).operands.front()
                            ? NodeId{}
                            : graph.value(graph.node(id).operands.front()).producer;
    // op-name: the gradient of a concat splits the gradient by the image that a convolution reads
    if (is(id, "split") && is(from, "conv_transpose") && may_split(graph, id, from)) {
      part(graph, id, from);
      // op-name: the weight gradient of a convolution of concatenated images
    } else if (is(id, "conv_weight_gradient") && is(from, "concat") &&
               may_part_weights(graph, from, id)) {
      part_weights(graph, from, id);
    }
  }
}

}  // namespace tenon::passes::training
