#include "ops/registry.h"
#include "passes/train/parts.h"

namespace tenon::training {
namespace {

// Fewer channels are not worth a kernel of their own, nor are more parts.
constexpr std::int64_t kFewestChannels = 32;
constexpr std::size_t kMostParts = 4;

bool is_in_order(const Graph& graph, ValueId value, const char* order) {
  const Type& type = graph.value(value).type;
  if (!type.is_tensor() || type.tensor().rank() != 4) return false;
  const Layout& layout = type.tensor().layout;
  return layout.is_empty() || layout.text() == order;
}

bool may_part(const Graph& graph, NodeId split, NodeId product) {
  const Node &parts = graph.node(split), &node = graph.node(product);
  const ValueId whole = node.results.front(), weights = node.operands[*node.op->operand_index("w")];
  if (graph.readers(whole).size() != 1 || graph.is_output(whole)) return false;
  if (node.operands.size() > 2 && node.operands[2]) return false;  // a gradient has no bias
  const AttrValue* groups = node.attrs.find("groups");
  if (groups && !(std::get<Dim>(*groups) == Dim(1))) return false;
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

}  // namespace

void part_gradients(Graph& graph) {
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.op_name(id) != "split")
      continue;  // op-name: what the gradient of a concat is made with
    const NodeId product = graph.value(graph.node(id).operands.front()).producer;
    // op-name: the gradient by the image that a convolution reads
    if (!product || graph.op_name(product) != "conv_transpose") continue;
    if (may_part(graph, id, product)) part(graph, id, product);
  }
}

}  // namespace tenon::training
