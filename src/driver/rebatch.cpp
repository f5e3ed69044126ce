#include "driver/rebatch.h"

#include "base/error.h"
#include "ir/verify.h"
#include "passes/train/train.h"

#include <optional>

namespace tenon {
namespace {

// The extent that the inputs' first axes have in common: that of the first input with an axis.
std::optional<Dim> batch_of(const Graph& graph) {
  for (const ValueId input : graph.inputs()) {
    const Type& type = graph.value(input).type;
    if (type.is_tensor() && type.tensor().rank() > 0) return type.tensor().dims.front();
  }
  return std::nullopt;
}

// Shapes that are written into a node: a list whose first extent is the old batch.
bool follow(Node& node, const Dim& before, std::int64_t batch) {
  bool has_changed = false;
  Attributes attrs = node.attrs;
  for (const auto& [name, value] : node.attrs) {
    if (name != "shape") continue;
    if (const auto* dims = std::get_if<Dims>(&value);
        dims != nullptr && !dims->empty() && dims->front() == before) {
      Dims changed = *dims;
      changed.front() = Dim(batch);
      attrs.set(name, changed);
      has_changed = true;
    }
  }
  node.attrs = std::move(attrs);
  return has_changed;
}

bool makes_constant(const Graph& graph, NodeId id) {
  const std::vector<ValueId>& results = graph.node(id).results;
  return !results.empty() && results[0] && graph.constant_of(results[0]) != nullptr;
}

}  // namespace

Graph rebatched(Graph graph, std::int64_t batch) {
  const std::optional<Dim> before = batch_of(graph);
  if (!before) throw Error("no input of the model has an axis for the batch", ErrorKind::Usage);
  if (const auto symbol = before->symbol_name()) {
    return with_symbols(std::move(graph), {{std::string(*symbol), Dim(batch)}});
  }
  if (!before->is_constant()) {
    throw Error("the first extent of the model's input is computed from others", ErrorKind::Usage)
        .got(*before)
        .hint("give --shapes");
  }
  for (const ValueId input : graph.inputs()) {
    Type type = graph.value(input).type;
    if (!type.is_tensor() || type.tensor().rank() == 0 || !(type.tensor().dims.front() == *before))
      continue;
    type.tensor().dims.front() = Dim(batch);
    graph.set_type(input, type);
  }
  try {
    for (const NodeId id : graph.nodes_in_order()) {
      if (makes_constant(graph, id)) continue;
      try {
        graph.infer(id);
      } catch (const Error&) {
        if (!follow(graph.mutable_node(id), *before, batch)) throw;
        graph.infer(id);
      }
    }
    verify(graph);
  } catch (Error& error) {
    throw error.hint("the graph is written for a batch of ", *before,
                     " alone: export it with a symbol there");
  }
  return graph;
}

}  // namespace tenon
