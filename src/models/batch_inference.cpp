#include "models/batch_inference.h"

#include "base/error.h"
#include "ops/definition/registry.h"

#include <algorithm>

namespace tenon::models {
namespace {

const Dims* dims_of(const Attributes& attrs, std::string_view name) {
  const AttrValue* value = attrs.find(name);
  return value == nullptr ? nullptr : std::get_if<Dims>(value);
}

std::int64_t number_of(const Attributes& attrs, std::string_view name, std::int64_t otherwise) {
  const AttrValue* value = attrs.find(name);
  const Dim* number = value == nullptr ? nullptr : std::get_if<Dim>(value);
  return number == nullptr || !number->is_constant() ? otherwise : number->constant();
}

std::size_t wrapped(std::int64_t axis, std::size_t rank) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

// Returns the axis of `shape` that holds a batch of one sample whose outer extents multiply to
// `outer`: an axis of its own, or the outermost factor of the next axis. A matrix holds samples in
// its rows.
std::optional<std::size_t> axis_of_sample(const Dims& shape, const Dim& outer) {
  Dim product = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (product == outer) {
      const bool is_in_rows = shape.size() == 2 && axis == 1 && !(shape[1] == Dim(1));
      return is_in_rows ? 0 : axis;
    }
    product = product * shape[axis];
  }
  return std::nullopt;
}

// Returns the axis of `shape` that holds a batch of `count` samples whose outer extents multiply to
// `outer`.
std::optional<std::size_t> axis_of_samples(const Dims& shape, const Dim& outer, const Dim& count) {
  if (count == Dim(1)) return axis_of_sample(shape, outer);
  Dim product = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const Dim inner = product * shape[axis];
    const bool is_inside =
        product == outer ||
        (outer.is_constant() && product.is_constant() && inner.is_constant() &&
         product.constant() <= outer.constant() && outer.constant() < inner.constant());
    if (is_inside && !(shape[axis] == Dim(1))) return axis;
    product = inner;
  }
  return std::nullopt;
}

bool has_equal_slices(const Tensor& tensor, std::size_t axis) {
  const Shape& shape = tensor.shape();
  std::size_t outer = 1;
  for (std::size_t k = 0; k < axis; ++k) outer *= static_cast<std::size_t>(shape[k]);
  const auto count = static_cast<std::size_t>(shape[axis]);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(tensor.bytes()));
  if (outer == 0 || count == 0 || bytes.size() % (outer * count) != 0) return false;
  const std::size_t inner = bytes.size() / (outer * count);
  for (std::size_t k = 0; k < outer * count; ++k) {
    const auto slice = bytes.subspan(k * inner, inner);
    if (!std::ranges::equal(slice, bytes.subspan(k / count * count * inner, inner))) return false;
  }
  return true;
}

}  // namespace

void BatchInference::run() {
  for (const NodeId id : graph_.nodes_in_order()) {
    const Node& node = graph_.node(id);
    if (std::ranges::any_of(node.operands, [&](ValueId v) { return is_changed(v); })) infer(id);
  }
}

// An axis holds the batch alone or merged with other extents.
bool BatchInference::is_batch(const Dim& before, const Dim& after) const {
  return batch_ && !(before == after) && before * batch_->after == after * batch_->before;
}

std::optional<std::size_t> BatchInference::batch_axis(ValueId value) const {
  if (!is_changed(value)) return std::nullopt;
  const Type& before = old_types_.at(value);
  const Type& after = graph_.value(value).type;
  if (!before.is_tensor() || !after.is_tensor()) return std::nullopt;
  const Dims &old_dims = before.tensor().dims, &new_dims = after.tensor().dims;
  if (old_dims.size() != new_dims.size()) return std::nullopt;
  for (std::size_t axis = 0; axis < old_dims.size(); ++axis) {
    if (is_batch(old_dims[axis], new_dims[axis])) return axis;
  }
  return std::nullopt;
}

void BatchInference::infer(NodeId id) {
  OldTypes types;
  std::unordered_map<ValueId, std::optional<Dims>> known;
  const auto known_of = [&](ValueId value) {
    const Dims* elements = graph_.known_elements(value);
    return elements == nullptr ? std::nullopt : std::optional(*elements);
  };
  for (const ValueId result : graph_.node(id).results) {
    if (!result) continue;
    types.emplace(result, graph_.value(result).type);
    known.emplace(result, known_of(result));
  }
  find_scanned_axes(graph_.node(id));
  adapt_attributes(id);
  const std::vector<Graph> bodies = graph_.node(id).bodies;
  const auto infer_types = [&] {
    adapt_bodies(id, bodies);
    graph_.infer(id);
  };
  try {
    infer_types();
    if (has_old_state(graph_.node(id)) && expand_operands(id)) infer_types();
  } catch (const Error&) {
    if (!expand_operands(id)) throw;
    infer_types();
  }
  for (auto& [result, before] : types) {
    if (graph_.value(result).type == before && known_of(result) == known[result]) continue;
    old_types_.emplace(result, std::move(before));
    pass_on_outer_factor(graph_.node(id), result);
  }
}

// Factor of the batch's axis outside the batch.
Dim BatchInference::outer_factor(ValueId value) const {
  const auto found = outer_factors_.find(value);
  return found == outer_factors_.end() ? Dim(1) : found->second;
}

// A result has the factor of an operand whose batch is in an axis of the same extent.
void BatchInference::pass_on_outer_factor(const Node& node, ValueId result) {
  const std::optional<std::size_t> axis = batch_axis(result);
  if (!axis || outer_factors_.contains(result)) return;
  const Dim extent = old_types_.at(result).tensor().dims[*axis];
  for (const ValueId operand : node.operands) {
    const std::optional<std::size_t> from = batch_axis(operand);
    if (!from || !outer_factors_.contains(operand)) continue;
    if (!(old_types_.at(operand).tensor().dims[*from] == extent)) continue;
    outer_factors_.emplace(result, outer_factors_.at(operand));
    return;
  }
}

void BatchInference::adapt_attributes(NodeId id) {
  const Node& node = graph_.node(id);
  if (!batch_ || node.operands.empty()) return;
  const std::optional<std::size_t> axis = batch_axis(node.operands.front());
  if (!axis) return;
  const std::string_view op = node.op->name;
  if (op == "reshape") {  // op-name: its shape states the batch
    adapt_reshape(id, *axis);
  } else if (op == "expand") {  // op-name: its shape states the batch
    adapt_aligned_shape(id, *axis);
  } else if (op == "resize") {  // op-name: its sizes may state the batch
    adapt_listed_axes(id, *axis, "sizes");
  } else if (op == "center_crop_pad") {  // op-name: its shape may state the batch
    adapt_listed_axes(id, *axis, "shape");
  }
}

// The batch keeps its position among the factors of the extents: the product of the extents outside
// it stays.
void BatchInference::adapt_reshape(NodeId id, std::size_t batch_axis) {
  const Node& node = graph_.node(id);
  const Dims* shape = dims_of(node.attrs, "shape");
  if (shape == nullptr) return;
  const Dims& operand = old_types_.at(node.operands.front()).tensor().dims;
  const Type& result = graph_.value(node.results.front()).type;
  if (!result.is_tensor()) return;
  Dim outer = outer_factor(node.operands.front());
  for (std::size_t axis = 0; axis < batch_axis; ++axis) outer = outer * operand[axis];
  const Dims& dims = result.tensor().dims;
  const auto axis = axis_of_samples(dims, outer, batch_->before);
  if (!axis || *axis >= shape->size()) return;
  for (std::size_t k = 0; k < *axis; ++k) outer = floor_div(outer, dims[k]);
  if (!(outer == Dim(1))) outer_factors_[node.results.front()] = outer;
  Dims changed = *shape;
  Dim& extent = changed[*axis];
  const bool is_copied = extent == Dim(0) && *axis == batch_axis;
  const auto open = std::ranges::find(changed, Dim(-1));
  if (is_copied || open - changed.begin() == static_cast<std::ptrdiff_t>(*axis)) return;
  extent = floor_div(dims[*axis], batch_->before) * batch_->after;
  graph_.set_attribute(id, "shape", changed);
}

// The last axes of `shape` are those of the operand.
void BatchInference::adapt_aligned_shape(NodeId id, std::size_t batch_axis) {
  const Node& node = graph_.node(id);
  const Dims* shape = dims_of(node.attrs, "shape");
  const std::size_t from_end = old_types_.at(node.operands.front()).tensor().rank() - batch_axis;
  if (shape == nullptr || from_end > shape->size()) return;
  Dims changed = *shape;
  Dim& extent = changed[changed.size() - from_end];
  if (!(extent == batch_->before)) return;
  extent = batch_->after;
  graph_.set_attribute(id, "shape", changed);
}

// `attr` has an extent for every axis in `axes`; without `axes`, for every axis.
void BatchInference::adapt_listed_axes(NodeId id, std::size_t batch_axis, std::string_view attr) {
  const Node& node = graph_.node(id);
  const Dims *extents = dims_of(node.attrs, attr), *axes = dims_of(node.attrs, "axes");
  if (extents == nullptr) return;
  const std::size_t rank = old_types_.at(node.operands.front()).tensor().rank();
  Dims changed = *extents;
  for (std::size_t k = 0; k < changed.size(); ++k) {
    const std::size_t axis =
        axes == nullptr || axes->empty() ? k : wrapped(axes->at(k).constant(), rank);
    if (axis == batch_axis && changed[k] == batch_->before) changed[k] = batch_->after;
  }
  graph_.set_attribute(id, attr, changed);
}

// The inputs of a body are the last operands; a scanned one lacks an outer axis.
void BatchInference::adapt_bodies(NodeId id, const std::vector<Graph>& bodies) {
  graph_.mutable_node(id).bodies = bodies;
  const std::vector<ValueId> operands = graph_.node(id).operands;
  for (Graph& body : graph_.mutable_node(id).bodies) {
    if (body.inputs().size() > operands.size()) continue;
    const std::size_t skipped = operands.size() - body.inputs().size();
    OldTypes changed;
    for (std::size_t k = 0; k < body.inputs().size(); ++k) {
      const ValueId input = body.inputs()[k], operand = operands[skipped + k];
      if (!is_changed(operand)) continue;
      const Type &before = old_types_.at(operand), &after = graph_.value(operand).type;
      Type type = body.value(input).type;
      if (!type.is_tensor() || !before.is_tensor() || !after.is_tensor()) continue;
      Dims& dims = type.tensor().dims;
      const Dims &old_dims = before.tensor().dims, &new_dims = after.tensor().dims;
      for (std::size_t back = 1; back <= std::min(dims.size(), old_dims.size()); ++back) {
        const Dim& old_extent = old_dims[old_dims.size() - back];
        if (dims[dims.size() - back] == old_extent)
          dims[dims.size() - back] = new_dims[new_dims.size() - back];
      }
      changed.emplace(input, body.value(input).type);
      body.set_type(input, type);
    }
    BatchInference inner(body, std::move(changed), batch_);
    inner.run();
    is_scanned_ = is_scanned_ || inner.is_scanned();
  }
}

void BatchInference::find_scanned_axes(const Node& node) {
  if (node.op->name != "scan") return;  // op-name: the op that iterates over an axis
  const auto states = static_cast<std::size_t>(number_of(node.attrs, "state_count", 0));
  const auto inputs = static_cast<std::size_t>(number_of(node.attrs, "input_count", 1));
  const Dims* axes = dims_of(node.attrs, "input_axes");
  for (std::size_t k = 0; k < inputs && states + k < node.operands.size(); ++k) {
    const std::optional<std::size_t> axis = batch_axis(node.operands[states + k]);
    if (!axis) continue;
    const std::int64_t scanned = axes != nullptr && k < axes->size() ? (*axes)[k].constant() : 0;
    const std::size_t rank = graph_.value(node.operands[states + k]).type.tensor().rank();
    is_scanned_ = is_scanned_ || wrapped(scanned, rank) == *axis;
  }
}

// Returns whether a body turns a carried value of the old batch into one of the new batch.
bool BatchInference::has_old_state(const Node& node) const {
  const bool is_loop = node.op->name == "loop", is_scan = node.op->name == "scan";  // op-name: ops
  if (!is_loop && !is_scan) return false;  // that carry values
  const std::size_t operand = is_loop ? 2 : 0, output = is_loop ? 1 : 0;
  const auto count =
      static_cast<std::size_t>(number_of(node.attrs, is_loop ? "carried_count" : "state_count", 0));
  const Graph& body = node.bodies.front();
  for (std::size_t k = 0; k < count; ++k) {
    const Type& before = graph_.value(node.operands.at(operand + k)).type;
    const Type& after = body.value(body.outputs().at(output + k)).type;
    if (!before.is_tensor() || !after.is_tensor()) continue;
    if (before.tensor().rank() != after.tensor().rank()) continue;
    for (std::size_t axis = 0; axis < before.tensor().rank(); ++axis) {
      if (is_batch(before.tensor().dims[axis], after.tensor().dims[axis])) return true;
    }
  }
  return false;
}

// Axes of operands that hold the batch, counted from the last one.
std::set<std::size_t> BatchInference::batch_axes_from_end(const Node& node) const {
  std::set<std::size_t> axes;
  for (const ValueId operand : node.operands) {
    if (const auto axis = batch_axis(operand))
      axes.insert(graph_.value(operand).type.tensor().rank() - *axis);
  }
  return axes;
}

// Expands operands that still have the old batch. Returns whether there are any.
bool BatchInference::expand_operands(NodeId id) {
  if (!batch_) return false;
  const std::set<std::size_t> axes = batch_axes_from_end(graph_.node(id));
  bool has_expanded = false;
  for (std::size_t k = 0; k < graph_.node(id).operands.size(); ++k) {
    const ValueId operand = graph_.node(id).operands[k];
    if (!operand || is_changed(operand) || !graph_.value(operand).type.is_tensor()) continue;
    const Dims dims = graph_.value(operand).type.tensor().dims;
    for (const std::size_t from_end : axes) {
      if (from_end > dims.size() || !(dims[dims.size() - from_end] == batch_->before)) continue;
      const ValueId made = expanded(operand, dims.size() - from_end, id);
      if (!made) continue;
      old_types_.emplace(made, graph_.value(operand).type);
      graph_.set_operand(id, k, made);
      has_expanded = true;
      break;
    }
  }
  return has_expanded;
}

ValueId BatchInference::expanded(ValueId value, std::size_t axis, NodeId before) {
  Dims dims = graph_.value(value).type.tensor().dims;
  const ValueId sample = batch_->before == Dim(1) ? value : one_sample(value, axis, before);
  if (!sample) return {};
  dims[axis] = batch_->after;
  const OpDef& expand = find_op("expand");  // op-name: repeats the sample
  const NodeId made =
      graph_.add_node({&expand, {sample}, Attributes{{"shape", dims}}, {}, {""}, ""}, before);
  return graph_.node(made).results.front();
}

// Returns one sample of a value that repeats it along an axis, or an invalid id.
ValueId BatchInference::one_sample(ValueId value, std::size_t axis, NodeId before) {
  const Value& given = graph_.value(value);
  if (given.producer && graph_.op_name(given.producer) == "expand") {  // op-name: repeats samples
    const ValueId source = graph_.node(given.producer).operands.front();
    const TensorType& type = graph_.value(source).type.tensor();
    const std::size_t from_end = given.type.tensor().rank() - axis;
    if (from_end > type.rank() || type.dims[type.rank() - from_end] == Dim(1)) return source;
  }
  const Constant* constant = graph_.constant_of(value);
  if (constant == nullptr || !has_equal_slices(constant->materialise(), axis)) return {};
  const OpDef& slice = find_op("slice");  // op-name: takes the sample
  const NodeId made = graph_.add_node(
      {&slice,
       {value},
       Attributes{
           {"starts", Dims{0}}, {"ends", Dims{1}}, {"axes", Dims{static_cast<std::int64_t>(axis)}}},
       {},
       {""},
       ""},
      before);
  return graph_.node(made).results.front();
}

}  // namespace tenon::models
