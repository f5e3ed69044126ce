#include "base/error.h"
#include "documents/aitemplate/exporter.h"
#include "ir/text.h"

#include <algorithm>
#include <functional>
#include <limits>

// Selection of an AITemplate operator for each node.
namespace tenon::documents::aitemplate {
namespace {

using Kind = PythonValue::Kind;

bool has_all_operands(const Node& node) {
  return std::all_of(node.operands.begin(), node.operands.end(),
                     [](ValueId id) { return static_cast<bool>(id); });
}

const TensorType* tensor_type(const Graph& graph, ValueId id) {
  const Type& type = graph.value(id).type;
  return type.is_tensor() ? &type.tensor() : nullptr;
}

bool has_tensors(const Graph& graph, const Node& node) {
  const auto is_tensor = [&](ValueId id) { return !id || graph.value(id).type.is_tensor(); };
  return std::all_of(node.operands.begin(), node.operands.end(), is_tensor) &&
         std::all_of(node.results.begin(), node.results.end(), is_tensor);
}

bool all_are(const std::vector<std::int64_t>& list, std::int64_t wanted) {
  return std::all_of(list.begin(), list.end(), [&](std::int64_t each) { return each == wanted; });
}

std::size_t normal(std::int64_t axis, std::size_t rank) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

PythonValue bools(std::size_t count) {
  PythonValue list = PythonValue::of(Kind::List);
  for (std::size_t k = 0; k < count; ++k) list.items.push_back(PythonValue::boolean(true));
  return list;
}

}  // namespace

std::string attribute_text(const OpDef& op, std::string_view name, const AttrValue& value) {
  const AttrDef* def = op.find_attr(name);
  const bool is_word = def != nullptr && def->kind == AttrKind::Word;
  return is_word ? std::get<std::string>(value) : print(value);
}

std::string attributes_text(const Node& node) {
  std::string text;
  for (const auto& [name, value] : node.attrs) {
    text += concat(text.empty() ? "{" : ", ", name, " = ", attribute_text(*node.op, name, value));
  }
  return text.empty() ? "" : text + "}";
}

void DumpExporter::add_node(NodeId id) {
  const Node& node = graph_.node(id);
  if (!node.results.empty() && node.results[0] && graph_.constant_of(node.results[0])) {
    add_value(node.results[0]);
    return;
  }
  using Try = bool (DumpExporter::*)(const Node&);
  static const std::vector<std::pair<std::string_view, Try>> tries = {
      {"conv", &DumpExporter::try_convolution},
      {"conv_transpose", &DumpExporter::try_convolution},
      {"max_pool", &DumpExporter::try_pool},
      {"average_pool", &DumpExporter::try_pool},
      {"matmul", &DumpExporter::try_gemm},
      {"einsum", &DumpExporter::try_gemm},
      {"fused", &DumpExporter::try_composite},
      {"fused", &DumpExporter::try_group},
      {"reshape", &DumpExporter::try_view},
      {"squeeze", &DumpExporter::try_view},
      {"unsqueeze", &DumpExporter::try_view},
      {"transpose", &DumpExporter::try_permute},
      {"concat", &DumpExporter::try_concat},
      {"split", &DumpExporter::try_split},
      {"slice", &DumpExporter::try_slice},
      {"softmax", &DumpExporter::try_normalization},
      {"layer_norm", &DumpExporter::try_normalization},
      {"group_norm", &DumpExporter::try_normalization},
      {"identity", &DumpExporter::try_normalization},
      {"reduce_sum", &DumpExporter::try_reduction},
      {"reduce_mean", &DumpExporter::try_reduction},
      {"reduce_max", &DumpExporter::try_reduction},
      {"reduce_min", &DumpExporter::try_reduction},
  };
  if (!native_.contains(id) && has_tensors(graph_, node) && has_all_operands(node)) {
    for (const auto& [op, attempt] : tries) {
      if (node.op->name == op && (this->*attempt)(node)) return;
    }
    if (try_elementwise(node)) return;
  }
  add_tenon_op(id);
}

// ---- elementwise ----

// Extents of a broadcast result come from the first operand that is not repeated.
std::size_t DumpExporter::add_elementwise(const FuncInfo& func, std::vector<std::size_t> operands,
                                          ValueId result, const Dims& dims, DType dtype) {
  Origins origins(dims.size());
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const std::size_t rank = tensors_[operands[k]].extents.size();
      if (rank + axis < dims.size()) continue;
      const std::size_t own = rank + axis - dims.size();
      const DimRow& row = extent(operands[k], own);
      const bool is_whole =
          !dims[axis].is_constant() || (row.is_static() && row.least() == dims[axis].constant());
      if (!is_whole) continue;
      origins[axis] = {k, own};
      break;
    }
  }
  Operation operation;
  operation.row.op = "elementwise";
  operation.row.func = FuncRow{std::string(func.name), func.number};
  operation.inputs = operands;
  operation.args = operands;
  operation.args.resize(operands.size() + func.number_count, kNone);
  operation.is_member = true;
  if (result) return add(std::move(operation), {result}, {origins});
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.extents = result_extents(dims, operands, origins);
  tensors_.push_back(std::move(tensor));
  operation.outputs = {tensors_.size() - 1};
  return add_made(std::move(operation));
}

bool DumpExporter::try_elementwise(const Node& node) {
  const FuncInfo* func = find_func_of_op(node.op->name, attributes_text(node));
  if (func == nullptr || func->operand_count != node.operands.size() || node.results.size() != 1)
    return false;
  const TensorType& type = graph_.value(node.results[0]).type.tensor();
  std::vector<std::size_t> operands;
  for (const ValueId operand : node.operands) {
    if (tensor_type(graph_, operand)->dtype != type.dtype) return false;
    operands.push_back(tensor_of(operand));
  }
  const std::size_t member =
      add_elementwise(*func, operands, node.results[0], type.dims, type.dtype);
  Operation group;
  group.row.op = "fused_elementwise";
  for (const std::size_t input : operations_[member].inputs) {
    if (std::find(group.inputs.begin(), group.inputs.end(), input) == group.inputs.end())
      group.inputs.push_back(input);
  }
  group.outputs = operations_[member].outputs;
  group.members = {member};
  group.input_accessors = group.inputs.size();
  group.output_accessors = 1;
  group.keeps_original_inputs = group.keeps_original_outputs = true;
  operations_.push_back(std::move(group));
  return true;
}

// Exports a group whose nodes are all elementwise functions of its operands and of one another.
bool DumpExporter::try_group(const Node& node) {
  const Graph& body = node.bodies.at(0);
  if (body.node_count() < 2 || body.outputs().size() != node.results.size()) return false;
  std::vector<ValueId> outputs = body.outputs();
  std::sort(outputs.begin(), outputs.end());
  const bool has_repeats = std::adjacent_find(outputs.begin(), outputs.end()) != outputs.end();
  const bool has_missing =
      std::any_of(node.results.begin(), node.results.end(), [](ValueId id) { return !id; });
  std::vector<ValueId> operands = node.operands;
  std::sort(operands.begin(), operands.end());
  if (has_repeats || has_missing ||
      std::adjacent_find(operands.begin(), operands.end()) != operands.end())
    return false;
  std::vector<const FuncInfo*> funcs;
  for (const NodeId id : body.nodes_in_order()) {
    const Node& inner = body.node(id);
    const FuncInfo* func = find_func_of_op(inner.op->name, attributes_text(inner));
    if (func == nullptr || !has_tensors(body, inner) || !has_all_operands(inner) ||
        func->operand_count != inner.operands.size() || inner.results.size() != 1) {
      return false;
    }
    const DType dtype = body.value(inner.results[0]).type.tensor().dtype;
    for (const ValueId operand : inner.operands) {
      if (tensor_type(body, operand)->dtype != dtype) return false;
    }
    funcs.push_back(func);
  }
  for (const ValueId output : body.outputs()) {
    if (!body.value(output).producer) return false;  // an operand that is passed through
  }
  std::unordered_map<ValueId, std::size_t> tensors;
  for (std::size_t k = 0; k < body.inputs().size(); ++k)
    tensors.emplace(body.inputs()[k], tensor_of(node.operands[k]));
  Operation group;
  group.row.op = "fused_elementwise";
  std::size_t next = 0;
  for (const NodeId id : body.nodes_in_order()) {
    const Node& inner = body.node(id);
    std::vector<std::size_t> inner_operands;
    for (const ValueId operand : inner.operands) inner_operands.push_back(tensors.at(operand));
    const ValueId made = inner.results[0];
    const auto place = std::find(body.outputs().begin(), body.outputs().end(), made);
    const ValueId outer =
        place == body.outputs().end()
            ? ValueId()
            : node.results[static_cast<std::size_t>(place - body.outputs().begin())];
    const TensorType& type = body.value(made).type.tensor();
    const std::size_t member =
        add_elementwise(*funcs[next++], inner_operands, outer, type.dims, type.dtype);
    tensors.emplace(made, operations_[member].outputs[0]);
    group.members.push_back(member);
  }
  for (const ValueId operand : node.operands) group.inputs.push_back(tensor_of(operand));
  for (const ValueId result : node.results) group.outputs.push_back(tensor_of(result));
  group.input_accessors = group.inputs.size();
  group.output_accessors = group.outputs.size();
  group.keeps_original_inputs = group.keeps_original_outputs = true;
  operations_.push_back(std::move(group));
  return true;
}

// ---- movement ----

bool DumpExporter::try_view(const Node& node) {
  if (node.operands.size() != 1) return false;  // a data-dependent shape
  const std::size_t x = tensor_of(node.operands[0]);
  const std::size_t rank = tensors_[x].extents.size();
  Operation operation;
  operation.row.op = node.op->name;
  operation.inputs = {x};
  Origins origins;
  if (node.op->name == "reshape") {
    operation.row.further = {{"is_intvar", PythonValue::boolean(false)},
                             {"shape", PythonValue()},
                             {"unknown_idx", PythonValue::number(-1)}};
  } else {
    const auto axes = frontends::integers_of(node, "axes");
    if (!axes || axes->size() != 1) return false;
    const bool is_squeeze = node.op->name == "squeeze";
    const std::size_t axis = normal((*axes)[0], is_squeeze ? rank : rank + 1);
    operation.row.further = {{"dim", PythonValue::number(static_cast<std::int64_t>(axis))}};
    for (std::size_t k = 0; k < rank; ++k) {
      if (!is_squeeze && k == axis) origins.emplace_back();
      if (!is_squeeze || k != axis) origins.emplace_back(std::make_pair(std::size_t{0}, k));
    }
  }
  const std::size_t made = add(std::move(operation), {node.results[0]}, {origins});
  Tensor& view = tensors_[operations_[made].outputs[0]];
  if (tensors_[x].view_depth < kMostViews) {
    view.view_of = x;
    view.view_depth = tensors_[x].view_depth + 1;
  }
  return true;
}

// AITemplate has dedicated kernels for some permutations.
DumpExporter::Operation DumpExporter::permutation(std::size_t tensor,
                                                  const std::vector<std::int64_t>& perm) {
  using Order = std::vector<std::int64_t>;
  Operation operation;
  operation.inputs = {tensor};
  const std::size_t rank = perm.size();
  Order swapped(rank);
  for (std::size_t k = 0; k < rank; ++k) swapped[k] = static_cast<std::int64_t>(k);
  if (rank >= 2) std::swap(swapped[rank - 1], swapped[rank - 2]);
  std::string& op = operation.row.op;
  if (perm == Order{0, 2, 1}) {
    op = "permute021";
  } else if (perm == Order{1, 0, 2}) {
    op = "permute102";
  } else if (perm == Order{2, 1, 0}) {
    op = "permute210";
  } else if (perm == Order{0, 2, 1, 3} && extent(tensor, 1).least() >= 24) {
    op = "permute0213";
  } else if (rank > 3 && perm == swapped && extent(tensor, rank - 1).least() >= 8) {
    op = "permute021";
  } else {
    op = "permute";
    operation.row.further = {{"dims", PythonValue::list(perm)}};
  }
  return operation;
}

bool DumpExporter::try_permute(const Node& node) {
  const std::size_t x = tensor_of(node.operands[0]);
  const std::size_t rank = tensors_[x].extents.size();
  auto perm = frontends::integers_of(node, "perm");
  if (!perm) return false;
  for (std::size_t k = 0; perm->size() < rank && k < rank; ++k)
    perm->push_back(static_cast<std::int64_t>(rank - 1 - k));
  Origins origins;
  for (std::int64_t& axis : *perm) {
    axis = static_cast<std::int64_t>(normal(axis, rank));
    origins.emplace_back(std::make_pair(std::size_t{0}, static_cast<std::size_t>(axis)));
  }
  add(permutation(x, *perm), {node.results[0]}, {origins});
  return true;
}

bool DumpExporter::try_concat(const Node& node) {
  const auto axis = frontends::integer_of(node, "axis");
  const std::size_t rank = tensors_[tensor_of(node.operands.at(0))].extents.size();
  if (!axis) return false;
  const std::size_t along = normal(*axis, rank);
  Operation operation;
  operation.row.op = "concatenate";
  for (const ValueId operand : node.operands) operation.inputs.push_back(tensor_of(operand));
  operation.row.further = {{"concat_dim", PythonValue::number(static_cast<std::int64_t>(along))},
                           {"fast_cat", PythonValue::boolean(true)},
                           {"input_masks", bools(node.operands.size())}};
  operation.input_accessors = operation.inputs.size();
  operation.keeps_original_inputs = true;
  Origins origins;
  for (std::size_t k = 0; k < rank; ++k) origins.emplace_back(std::make_pair(std::size_t{0}, k));
  origins[along].reset();
  add(std::move(operation), {node.results[0]}, {origins});
  return true;
}

bool DumpExporter::try_split(const Node& node) {
  const auto axis = frontends::integer_of(node, "axis");
  const std::size_t x = tensor_of(node.operands[0]);
  const std::size_t rank = tensors_[x].extents.size();
  const bool has_missing =
      std::any_of(node.results.begin(), node.results.end(), [](ValueId id) { return !id; });
  if (!axis || node.operands.size() != 1 || has_missing) return false;
  const std::size_t along = normal(*axis, rank);
  std::vector<std::int64_t> sizes;
  std::vector<Origins> origins;
  for (const ValueId result : node.results) {
    const auto size = graph_.value(result).type.tensor().dims[along].value();
    if (!size) return false;
    sizes.push_back(*size);
    Origins own;
    for (std::size_t k = 0; k < rank; ++k) own.emplace_back(std::make_pair(std::size_t{0}, k));
    own[along].reset();
    origins.push_back(std::move(own));
  }
  Operation operation;
  operation.row.op = "split";
  operation.inputs = {x};
  operation.row.further = {{"output_masks", bools(sizes.size())},
                           {"split_dim", PythonValue::number(static_cast<std::int64_t>(along))},
                           {"split_sizes", PythonValue::list(sizes)}};
  operation.keeps_original_outputs = true;
  add(std::move(operation), node.results, origins);
  return true;
}

bool DumpExporter::try_slice(const Node& node) {
  const auto starts = frontends::integers_of(node, "starts"),
             ends = frontends::integers_of(node, "ends"),
             steps = frontends::integers_of(node, "steps");
  auto axes = frontends::integers_of(node, "axes");
  if (node.operands.size() != 1 || !starts || !ends || !steps || !axes || !all_are(*steps, 1) ||
      starts->empty()) {
    return false;
  }
  const std::size_t x = tensor_of(node.operands[0]);
  const std::size_t rank = tensors_[x].extents.size();
  const std::int64_t whole = std::numeric_limits<std::int32_t>::max();
  for (std::size_t k = 0; axes->empty() && k < starts->size(); ++k)
    axes->push_back(static_cast<std::int64_t>(k));
  if (axes->size() != starts->size()) return false;
  std::vector<std::int64_t> from(rank, 0), to(rank, whole);
  Origins origins;
  for (std::size_t k = 0; k < rank; ++k) origins.emplace_back(std::make_pair(std::size_t{0}, k));
  bool cuts = false;
  for (std::size_t k = 0; k < axes->size(); ++k) {
    const std::size_t axis = normal((*axes)[k], rank);
    if ((*starts)[k] < -whole || (*ends)[k] < -whole || (*starts)[k] > whole) return false;
    from[axis] = (*starts)[k];
    to[axis] = std::min((*ends)[k], whole);
    if (from[axis] == 0 && to[axis] == whole) continue;
    origins[axis].reset();
    cuts = true;
  }
  if (!cuts) return false;
  Operation operation;
  operation.row.op = "dynamic_slice";
  operation.inputs = {x};
  operation.row.further = {{"end_indices", PythonValue::list(to)},
                           {"start_indices", PythonValue::list(from)}};
  add(std::move(operation), {node.results[0]}, {origins});
  return true;
}

// ---- native Tenon operators ----

void DumpExporter::add_tenon_op(NodeId id) {
  const NativeNode own = native_node(graph_, id);
  Operation operation;
  operation.row.op = graph_.op_name(id);
  operation.row.further.emplace_back(kOwnKey, PythonValue::string(own.text));
  if (own.outputs.empty()) {
    ++not_written_[concat("nodes without results (", graph_.op_name(id), ")")];
    return;
  }
  for (const ValueId input : own.inputs) operation.inputs.push_back(tensor_of(input));
  std::vector<Origins> origins;
  for (const ValueId result : own.outputs) {
    Origins axes;
    const TensorType* type = tensor_type(graph_, result);
    const std::size_t rank = type == nullptr ? 0 : type->rank();
    const bool is_alike =
        !operation.inputs.empty() && tensors_[operation.inputs[0]].extents.size() == rank;
    for (std::size_t k = 0; is_alike && k < rank; ++k)
      axes.emplace_back(std::make_pair(std::size_t{0}, k));
    origins.push_back(std::move(axes));
  }
  add(std::move(operation), own.outputs, origins);
}

}  // namespace tenon::documents::aitemplate
