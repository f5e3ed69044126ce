#include "base/error.h"
#include "frontends/onnx/body_call.h"

namespace tenon::frontends::onnx {
namespace {

using Types = std::vector<Type>;

void append(std::vector<Var>& list, const std::vector<Var>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

Types types_of(const NodeImport& node, const std::vector<Var>& values) {
  Types types;
  for (Var value : values) types.push_back(node.type(value));
  return types;
}

std::vector<Var> inputs_from(const NodeImport& node, std::size_t first) {
  std::vector<Var> values;
  for (std::size_t k = first; k < node.input_count(); ++k) values.push_back(node.input(k));
  return values;
}

// A constant condition selects one branch; the other one may be invalid.
void import_if(NodeImport& node) {
  if (const std::optional<Tensor> condition = node.constant_input(0);
      condition && condition->size() == 1) {
    const bool holds = condition->integer_at(0) != 0;
    node.outputs(node.inlined_body(holds ? "then_branch" : "else_branch", {}));
    return;
  }
  NodeImport::Bodies bodies = node.bodies({"then_branch", "else_branch"}, {{}, {}});
  std::vector<Var> operands{node.input(0)};
  append(operands, bodies.captured);
  const std::size_t count = bodies.graphs[0].outputs().size();
  call_with_bodies(node, "if", operands, {}, std::move(bodies.graphs), count);
}

// Replaces extents that the body changes by new symbols. Returns whether there were any.
bool loosen(const NodeImport& node, const Graph& body, Types& types, std::size_t first) {
  bool has_changed = false;
  const std::vector<std::string> names = node.output_names(types.size() - first);
  for (std::size_t k = first; k < types.size(); ++k) {
    const Type& next = body.value(body.outputs().at(k - first + 1)).type;
    if (!types[k].is_known() || next == types[k]) continue;
    if (!types[k].is_tensor() || !next.is_tensor() ||
        types[k].tensor().rank() != next.tensor().rank()) {
      types[k] = Type{};  // as the body declares it
      has_changed = true;
      continue;
    }
    for (std::size_t axis = 0; axis < next.tensor().rank(); ++axis) {
      Dim& dim = types[k].tensor().dims[axis];
      const Dim own = Dim::symbol(concat(names[k - first], ".", k - first, "#", axis));
      if (dim == next.tensor().dims[axis] || dim == own) continue;
      dim = own;
      has_changed = true;
    }
  }
  return has_changed;
}

// Returns whether every iteration of a loop's body passes its condition on: it returns its second
// input.
bool keeps_condition(const Graph& body) {
  ValueId value = body.outputs().front();
  for (NodeId maker; (maker = body.value(value).producer); value = body.node(maker).operands[0]) {
    if (body.op_name(maker) != "identity") return false;
  }
  return body.inputs().size() > 1 && value == body.inputs()[1];
}

// Returns the trip count and the condition. A condition that the body passes on decides only
// whether the loop runs at all, so the trip count alone ends the loop, and gives the extents of its
// results.
std::vector<Var> trip_operands(NodeImport& node, const Graph& body) {
  const Var trips = node.input_or_none(0), condition = node.input_or_none(1);
  if (!node.has_input(0) || !node.has_input(1) || !keeps_condition(body)) return {trips, condition};
  if (const std::optional<Tensor> known = node.constant_input(1);
      known && known->size() == 1 && known->integer_at(0) != 0) {
    return {trips, {}};
  }
  const Var none = node.build.constant("i64[] splat 0");
  return {node.call("where", {condition, trips, none}), {}};
}

void import_loop(NodeImport& node) {
  const std::vector<Var> carried = inputs_from(node, 2);
  Types types{TensorType{DType::I64, {}, {}}, TensorType{DType::Bool, {}, {}}};
  for (Type& type : types_of(node, carried)) types.push_back(std::move(type));
  NodeImport::Bodies bodies = node.bodies({"body"}, {types});
  // Inference inside a body holds only for extents that every iteration preserves. Each round
  // loosens at least one extent; only artificial bodies need more than a few rounds.
  constexpr int max_rounds = 4;
  for (int round = 1; bodies.graphs[0].outputs().size() > carried.size(); ++round) {
    if (!loosen(node, bodies.graphs[0], types, 2)) break;
    if (round == max_rounds) std::fill(types.begin() + 2, types.end(), Type{});
    bodies = node.bodies({"body"}, {types});
    if (round == max_rounds) break;
  }
  const std::size_t output_count = bodies.graphs[0].outputs().size();
  if (output_count <= carried.size()) {
    throw Error("the loop's body gives too few outputs")
        .expected("a condition and ", carried.size(), " carried values")
        .got(output_count);
  }
  std::vector<Var> operands = trip_operands(node, bodies.graphs[0]);
  append(operands, carried);
  append(operands, bodies.captured);
  call_with_bodies(node, "loop", operands,
                   {{"carried_count", static_cast<std::int64_t>(carried.size())}},
                   std::move(bodies.graphs), output_count - 1);
}

// Returns the type of a tensor at one position of an axis, if it is known.
Type without_axis(const Type& type, std::int64_t axis) {
  if (!type.is_tensor()) return {};
  TensorType step{type.tensor().dtype, type.tensor().dims, {}};
  const auto rank = static_cast<std::int64_t>(step.rank());
  if (axis < -rank || axis >= rank) return {};
  step.dims.erase(step.dims.begin() + (axis < 0 ? axis + rank : axis));
  return step;
}

std::vector<Attr> scan_attrs(std::size_t state_count, std::size_t input_count) {
  return {{"state_count", static_cast<std::int64_t>(state_count)},
          {"input_count", static_cast<std::int64_t>(input_count)}};
}

std::size_t scanned_count(const NodeImport& node, std::size_t available) {
  const std::int64_t count = node.integer("num_scan_inputs");
  if (count < 1 || count > static_cast<std::int64_t>(available)) {
    throw Error("num_scan_inputs does not fit the inputs").expected("1 to ", available).got(count);
  }
  return static_cast<std::size_t>(count);
}

void import_scan_9(NodeImport& node) {
  std::vector<Var> values = node.inputs();
  const std::size_t input_count = scanned_count(node, values.size());
  const std::size_t state_count = values.size() - input_count;
  const std::vector<std::int64_t> axes = node.integers("scan_input_axes");
  Types types = types_of(node, values);
  for (std::size_t k = 0; k < input_count; ++k) {
    Type& type = types[state_count + k];
    type = without_axis(type, k < axes.size() ? axes[k] : 0);
  }
  NodeImport::Bodies bodies = node.bodies({"body"}, {types});
  append(values, bodies.captured);
  std::vector<Attr> attrs = scan_attrs(state_count, input_count);
  attrs.emplace_back("input_axes", axes);
  attrs.emplace_back("input_reverse", node.integers("scan_input_directions"));
  attrs.emplace_back("output_axes", node.integers("scan_output_axes"));
  attrs.emplace_back("output_reverse", node.integers("scan_output_directions"));
  const std::size_t count = bodies.graphs[0].outputs().size();
  call_with_bodies(node, "scan", values, attrs, std::move(bodies.graphs), count);
}

// Version 8 also scans over a batch axis: a scan over the batch whose body is the scan over time.
void import_scan_8(NodeImport& node) {
  if (node.has_input(0)) node.unsupported("sequence_lens");
  std::vector<Var> values = inputs_from(node, 1);
  const std::size_t input_count = scanned_count(node, values.size());
  const std::size_t state_count = values.size() - input_count;
  Types batch_types = types_of(node, values), step_types;
  for (Type& type : batch_types) {
    type = without_axis(type, 0);
    step_types.push_back(step_types.size() < state_count ? type : without_axis(type, 0));
  }
  NodeImport::Bodies bodies = node.bodies({"body"}, {step_types});
  const std::size_t own_count = values.size();
  append(values, bodies.captured);
  for (Var value : bodies.captured) batch_types.push_back(node.type(value));

  Builder batch("batch");
  std::vector<Var> inner;
  for (std::size_t k = 0; k < batch_types.size(); ++k) {
    inner.push_back(batch.input(concat("x", k), batch_types[k]));
  }
  std::vector<Attr> attrs = scan_attrs(state_count, input_count);
  attrs.emplace_back("input_reverse", node.integers("directions"));
  const std::size_t count = bodies.graphs[0].outputs().size();
  const std::vector<Var> results = batch.call_all(
      "scan", inner, attrs, std::vector<std::string>(count), std::move(bodies.graphs));
  for (Var result : results) batch.output(result);
  std::vector<Graph> outer_bodies;
  outer_bodies.push_back(batch.take());
  call_with_bodies(node, "scan", values, scan_attrs(0, own_count), std::move(outer_bodies), count);
}

void import_scan(NodeImport& node) {
  if (node.opset() < 9) {
    import_scan_8(node);
  } else {
    import_scan_9(node);
  }
}

constexpr Handler control_table[] = {
    {"If", import_if},
    {"Loop", import_loop},
    {"Scan", import_scan},
};

}  // namespace

std::span<const Handler> control_handlers() { return control_table; }

}  // namespace tenon::frontends::onnx
