#include "models/rebatch.h"

#include "base/error.h"
#include "ir/verify.h"
#include "models/batch_inference.h"
#include "models/inputs.h"
#include "passes/train/train.h"

#include <unordered_map>

namespace tenon::models {
namespace {

// Returns the first input that has an axis.
ValueId first_with_axis(const Graph& graph) {
  for (const ValueId input : graph.inputs()) {
    const Type& type = graph.value(input).type;
    if (type.is_tensor() && type.tensor().rank() > 0) return input;
  }
  return {};
}

// Sets the axis of every input that has the old batch there. Returns the old types.
std::unordered_map<ValueId, Type> set_batch(Graph& graph, const BatchChange& batch,
                                            std::size_t axis) {
  std::unordered_map<ValueId, Type> old_types;
  for (const ValueId input : graph.inputs()) {
    Type type = graph.value(input).type;
    if (!type.is_tensor() || type.tensor().rank() == 0) continue;
    Dim& extent = type.tensor().dims[axis < type.tensor().rank() ? axis : 0];
    if (!(extent == batch.before)) continue;
    extent = batch.after;
    old_types.emplace(input, graph.value(input).type);
    graph.set_type(input, type);
  }
  return old_types;
}

// Returns whether a `scan` iterates over that axis of the inputs.
bool is_scanned(Graph graph, const Dim& extent, std::size_t axis) {
  const BatchChange batch{extent, extent + 1};
  BatchInference inference(graph, set_batch(graph, batch, axis), batch);
  try {
    inference.run();
  } catch (const Error&) {  // a node past the scan, or the graph has another batch
  }
  return inference.is_scanned();
}

void reinfer(Graph& graph, std::unordered_map<ValueId, Type> old_types,
             std::optional<BatchChange> batch, const std::string& hint) {
  try {
    BatchInference(graph, std::move(old_types), std::move(batch)).run();
    verify(graph);
  } catch (Error& error) {
    throw error.hint(hint);
  }
}

}  // namespace

std::size_t batch_axis(const Graph& graph) {
  bool has_scan = false;
  for (const NodeId id : graph.nodes_in_order())
    has_scan = has_scan || graph.op_name(id) == "scan";  // op-name: the op that iterates
  if (!has_scan) return 0;
  const Dims dims = graph.value(first_with_axis(graph)).type.tensor().dims;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (!is_scanned(graph, dims[axis], axis)) return axis;
  }
  return 0;
}

std::optional<Dim> batch_of(const Graph& graph) {
  const ValueId input = first_with_axis(graph);
  if (!input) return std::nullopt;
  return graph.value(input).type.tensor().dims[batch_axis(graph)];
}

Graph rebatched(Graph graph, std::int64_t batch) {
  if (batch == 0) return graph;
  const std::optional<Dim> before = batch_of(graph);
  if (!before) throw Error("no input of the model has an axis for the batch", ErrorKind::Usage);
  if (const auto symbol = before->symbol_name()) {
    return passes::with_symbols(std::move(graph), {{std::string(*symbol), Dim(batch)}});
  }
  if (!before->is_constant()) {
    throw Error("the first extent of the model's input is computed from others", ErrorKind::Usage)
        .got(*before)
        .hint("give --shapes");
  }
  if (*before == Dim(batch)) return graph;
  const BatchChange change{*before, Dim(batch)};
  const std::size_t axis = batch_axis(graph);
  auto old_types = set_batch(graph, change, axis);
  reinfer(graph, std::move(old_types), change,
          concat("the graph is written for a batch of ", *before,
                 " alone: export it with a symbol there"));
  return graph;
}

Graph reshaped(Graph graph, const std::map<std::string, Shape>& shapes) {
  const ValueId first = first_with_axis(graph);
  if (!first) return graph;
  const Dim before = graph.value(first).type.tensor().dims.front();
  std::optional<std::int64_t> batch;
  std::unordered_map<ValueId, Type> old_types;
  const auto set = [&](ValueId input, const Shape& shape) {
    Type type = graph.value(input).type;
    if (!type.is_tensor() || type.tensor().rank() != shape.size()) return;
    Dims& dims = type.tensor().dims;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (!dims[axis].is_constant() || dims[axis] == Dim(shape[axis])) continue;
      if (axis == 0 && dims[0] == before) batch = shape[0];
      dims[axis] = Dim(shape[axis]);
      old_types.emplace(input, graph.value(input).type);
    }
    graph.set_type(input, type);
  };
  for (const ValueId input : graph.inputs()) {
    const auto given = shapes.find(graph.value(input).name);
    if (given != shapes.end()) set(input, given->second);
  }
  if (old_types.empty()) return graph;
  for (const ValueId input : graph.inputs()) {
    Type type = graph.value(input).type;
    if (!batch || !type.is_tensor() || type.tensor().rank() == 0) continue;
    if (shapes.contains(graph.value(input).name) || !(type.tensor().dims[0] == before)) continue;
    type.tensor().dims[0] = Dim(*batch);
    old_types.emplace(input, graph.value(input).type);
    graph.set_type(input, type);
  }
  std::optional<BatchChange> change;
  if (batch) change = BatchChange{before, Dim(*batch)};
  reinfer(graph, std::move(old_types), std::move(change),
          "the graph supports only its static extents: export it with dynamic axes");
  return graph;
}

Graph with_fixed_shapes(Graph graph, std::int64_t batch,
                        const std::map<std::string, Shape>& shapes) {
  graph = rebatched(std::move(graph), batch);
  if (shapes.empty()) return graph;
  graph = reshaped(std::move(graph), shapes);
  const DimBindings symbols = symbol_values(graph, shapes);
  return passes::with_symbols(std::move(graph), symbols);
}

}  // namespace tenon::models
