#include "passes/choose_layouts/shuffle.h"

#include "ops/definition/registry.h"
#include "passes/rewrite/facts.h"

#include <algorithm>

namespace tenon::passes::layouts {
namespace {

const TensorType* type_of(const Graph& graph, ValueId value) {
  return value && graph.value(value).type.is_tensor() ? &graph.value(value).type.tensor() : nullptr;
}

// Returns the only reader of the value; invalid if it has several or is an output.
NodeId only_reader(const Graph& graph, ValueId value) {
  const auto& readers = graph.readers(value);
  return readers.size() == 1 && !graph.is_output(value) ? *readers.begin() : NodeId{};
}

bool is_op(const Graph& graph, NodeId node, std::string_view op) {
  return node && graph.node(node).op == &find_op(op);
}

// Returns the transpose between the reshapes, found from any of the three nodes.
NodeId transpose_near(const Graph& graph, NodeId node) {
  if (is_op(graph, node, "transpose")) return node;
  if (!is_op(graph, node, "reshape")) return {};
  const NodeId before = graph.value(graph.node(node).operands[0]).producer;
  if (is_op(graph, before, "transpose")) return before;
  const NodeId after = only_reader(graph, graph.node(node).results[0]);
  return is_op(graph, after, "transpose") ? after : NodeId{};
}

Attributes reshape_to(const Dims& shape) {
  Attributes attrs{{"shape", shape}};
  const bool may_be_empty =
      std::ranges::any_of(shape, [](const Dim& extent) { return !provably_at_most(1, extent); });
  if (may_be_empty) attrs.set("allow_zero", true);
  return attrs;
}

}  // namespace

std::optional<Shuffle> find_shuffle(const Graph& graph, NodeId node) {
  Shuffle found;
  found.transpose = transpose_near(graph, node);
  if (!found.transpose) return {};
  const Node& transpose = graph.node(found.transpose);
  found.split = graph.value(transpose.operands[0]).producer;
  found.join = only_reader(graph, transpose.results[0]);
  if (!is_op(graph, found.split, "reshape") || !is_op(graph, found.join, "reshape")) return {};
  if (node != found.split && node != found.transpose && node != found.join) return {};
  if (only_reader(graph, transpose.operands[0]) != found.transpose) return {};
  const TensorType* x = type_of(graph, graph.node(found.split).operands[0]);
  const TensorType* apart = type_of(graph, transpose.operands[0]);
  const TensorType* y = type_of(graph, graph.node(found.join).results[0]);
  const AttrValue* order = transpose.attrs.find("perm");
  if (!x || !apart || !y || !order || !Forms::has_rank(x->rank()) || !(x->dims == y->dims))
    return {};
  if (apart->rank() <= x->rank()) return {};

  // (batch, parts…, spatial…): the permutation only reorders the parts.
  const std::size_t spatial = x->rank() - 2, parts = apart->rank() - 1 - spatial;
  const auto perm = rewrite::counted_axes(std::get<Dims>(*order), apart->rank());
  if (!perm || !(apart->dims[0] == x->dims[0]) || perm->front() != 0) return {};
  for (std::size_t k = 0; k < spatial; ++k) {
    const std::size_t axis = 1 + parts + k;
    if (!(apart->dims[axis] == x->dims[2 + k]) || (*perm)[axis] != static_cast<std::int64_t>(axis))
      return {};
  }
  Dims split{x->dims[0]}, join{x->dims[0]};
  split.insert(split.end(), x->dims.begin() + 2, x->dims.end());
  join.insert(join.end(), x->dims.begin() + 2, x->dims.end());
  Axes moved;
  for (std::size_t k = 0; k <= spatial; ++k) moved.push_back(static_cast<std::int64_t>(k));
  for (std::size_t k = 1; k <= parts; ++k) {
    split.push_back(apart->dims[k]);
    moved.push_back((*perm)[k] + static_cast<std::int64_t>(spatial));
  }
  join.push_back(x->dims[1]);
  found.split_attrs = reshape_to(split);
  found.transpose_attrs = {{"perm", to_dims(moved)}};
  found.join_attrs = reshape_to(join);
  return found;
}

}  // namespace tenon::passes::layouts
