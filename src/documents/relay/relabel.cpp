#include "documents/relay/relabel.h"

#include "base/error.h"
#include "ir/graph.h"

#include <set>

namespace tenon::documents::relay {
namespace {

// Propagates types to readers until they stop changing.
void infer_readers(Graph& graph, ValueId changed) {
  std::vector<ValueId> open{changed};
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    const std::vector<NodeId> readers = graph.readers(value);
    for (const NodeId reader : std::set<NodeId>(readers.begin(), readers.end())) {
      std::vector<Type> before;
      for (const ValueId result : graph.node(reader).results) {
        before.push_back(result ? graph.value(result).type : Type());
      }
      graph.infer(reader);
      for (std::size_t k = 0; k < before.size(); ++k) {
        const ValueId result = graph.node(reader).results[k];
        if (result && !(graph.value(result).type == before[k])) open.push_back(result);
      }
    }
  }
}

bool try_relabel(Graph& graph, ValueId value, const TensorType& labelled) {
  const Type before = graph.value(value).type;
  graph.set_type(value, labelled);
  try {
    infer_readers(graph, value);
    return true;
  } catch (const Error&) {
    // Removes the layouts that were inferred from this one.
    graph.set_type(value, before);
    infer_readers(graph, value);
    return false;
  }
}

// Returns the value that determines a layout: unary layout-agnostic operators forward their
// operand's.
ValueId source_of_layout(const Graph& graph, ValueId value) {
  while (const NodeId producer = graph.value(value).producer) {
    const Node& node = graph.node(producer);
    if (node.op->layout.kind != LayoutRule::Kind::Any || node.operands.size() != 1) break;
    const Type& operand = graph.value(node.operands[0]).type;
    if (!operand.is_tensor() || !operand.tensor().layout.is_empty()) break;
    value = node.operands[0];
  }
  return value;
}

}  // namespace

Var relabel(Builder& builder, Var value, const Layout& layout) {
  Graph& graph = builder.graph();
  TensorType type = builder.type(value).tensor();
  if (type.layout == layout) return value;
  if (layout.rank() != type.rank()) {
    throw Error("a tensor has another rank than its layout")
        .expected(layout.text())
        .got(to_string(type));
  }
  const bool is_free = type.layout.is_empty();
  type.layout = layout;
  if (is_free) {
    const ValueId source = source_of_layout(graph, ValueId(value.id()));
    TensorType labelled = graph.value(source).type.tensor();
    labelled.layout = layout;
    if (try_relabel(graph, source, labelled)) return value;
    if (try_relabel(graph, ValueId(value.id()), type)) return value;
  }
  Attributes attrs;
  attrs.set("shape", type.dims);
  const Var copy = builder.call_all("reshape", {value}, std::move(attrs), {""}).front();
  graph.set_type(ValueId(copy.id()), type);
  return copy;
}

}  // namespace tenon::documents::relay
