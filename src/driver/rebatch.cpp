#include "driver/rebatch.h"

#include "base/error.h"
#include "driver/inputs.h"
#include "ir/verify.h"
#include "passes/train/train.h"

#include <optional>

namespace tenon {
namespace {

// Returns the batch: the first extent of the first input that has an axis.
std::optional<Dim> batch_of(const Graph& graph) {
  for (const ValueId input : graph.inputs()) {
    const Type& type = graph.value(input).type;
    if (type.is_tensor() && type.tensor().rank() > 0) return type.tensor().dims.front();
  }
  return std::nullopt;
}

// Updates shape attributes of a node whose first extent is the old batch.
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

// Infers types again after the input types have changed.
void infer_anew(Graph& graph, const Dim& before, std::int64_t batch, const std::string& hint) {
  try {
    for (const NodeId id : graph.nodes_in_order()) {
      if (makes_constant(graph, id)) continue;
      try {
        graph.infer(id);
      } catch (const Error&) {
        if (!follow(graph.mutable_node(id), before, batch)) throw;
        graph.infer(id);
      }
    }
    verify(graph);
  } catch (Error& error) {
    throw error.hint(hint);
  }
}

}  // namespace

Graph rebatched(Graph graph, std::int64_t batch) {
  if (batch == 0) return graph;
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
  infer_anew(graph, *before, batch,
             concat("the graph is written for a batch of ", *before,
                    " alone: export it with a symbol there"));
  return graph;
}

Graph reshaped(Graph graph, const std::map<std::string, Shape>& shapes) {
  const std::optional<Dim> before = batch_of(graph);
  std::optional<std::int64_t> batch;
  bool has_changed = false;
  const auto set = [&](ValueId input, const Shape& shape) {
    Type type = graph.value(input).type;
    if (!type.is_tensor() || type.tensor().rank() != shape.size()) return;
    Dims& dims = type.tensor().dims;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (!dims[axis].is_constant() || dims[axis] == Dim(shape[axis])) continue;
      if (axis == 0 && before && dims[0] == *before) batch = shape[0];
      dims[axis] = Dim(shape[axis]);
      has_changed = true;
    }
    graph.set_type(input, type);
  };
  for (const ValueId input : graph.inputs()) {
    const auto given = shapes.find(graph.value(input).name);
    if (given != shapes.end()) set(input, given->second);
  }
  if (!has_changed) return graph;
  for (const ValueId input : graph.inputs()) {
    Type type = graph.value(input).type;
    if (!batch || !type.is_tensor() || type.tensor().rank() == 0) continue;
    if (shapes.contains(graph.value(input).name) || !(type.tensor().dims[0] == *before)) continue;
    type.tensor().dims[0] = Dim(*batch);
    graph.set_type(input, type);
  }
  infer_anew(graph, before.value_or(Dim(0)), batch.value_or(0),
             "the graph supports only its static extents: export it with dynamic axes");
  return graph;
}

Graph with_fixed_shapes(Graph graph, std::int64_t batch,
                        const std::map<std::string, Shape>& shapes) {
  graph = rebatched(std::move(graph), batch);
  if (shapes.empty()) return graph;
  graph = reshaped(std::move(graph), shapes);
  const DimBindings symbols = symbol_values(graph, shapes);
  return with_symbols(std::move(graph), symbols);
}

}  // namespace tenon
