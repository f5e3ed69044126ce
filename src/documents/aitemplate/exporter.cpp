#include "documents/aitemplate/exporter.h"

#include "base/error.h"
#include "base/text.h"
#include "documents/aitemplate/export.h"
#include "documents/aitemplate/import.h"
#include "documents/aitemplate/vocabulary.h"
#include "ir/text.h"

#include <algorithm>

namespace tenon::documents::aitemplate {
namespace {

using Kind = PythonValue::Kind;

constexpr std::int64_t kMostElements = 64;  // of a constant that is written in full

std::vector<bool> needed_nodes(const Graph& graph) {
  std::vector<bool> is_needed(graph.node_id_bound(), false);
  std::vector<ValueId> stack = graph.outputs();
  while (!stack.empty()) {
    const NodeId producer = graph.value(stack.back()).producer;
    stack.pop_back();
    if (!producer || is_needed[producer.index()]) continue;
    is_needed[producer.index()] = true;
    for (const ValueId operand : graph.node(producer).operands) {
      if (operand) stack.push_back(operand);
    }
  }
  return is_needed;
}

// Replaces symbols by names that sympy accepts.
Dim with_safe_symbols(const Dim& dim) {
  SymbolRanges symbols;
  dim.collect_symbols(symbols);
  DimBindings safe;
  for (const auto& [name, range] : symbols) {
    if (c_safe(name) != name) safe.emplace(name, Dim::symbol(c_safe(name), range));
  }
  return safe.empty() ? dim : dim.substitute(safe);
}

std::optional<std::string> data_text(const Constant& constant) {
  const bool is_stored = constant.base().kind() == Constant::Kind::Dense;
  if (is_stored && constant.size() > kMostElements) {
    const auto width = static_cast<std::int64_t>(info(constant.dtype()).storage_bytes);
    return concat("<tenon.Data ", constant.size() * width, " bytes>");
  }
  const std::string text = print(constant);
  if (text.find_first_of("<>\n") != std::string::npos)
    return concat("<tenon.Data ", constant.size(), " elements>");
  return concat(kConstantMark, text, ">");
}

}  // namespace

Dump DumpExporter::run() {
  read_dim_notes();
  const std::vector<bool> is_needed = needed_nodes(graph_);
  for (const ValueId id : graph_.inputs()) add_value(id);
  for (const NodeId id : graph_.nodes_in_order()) {
    if (is_needed[id.index()]) add_node(id);
  }
  if (!not_written_.empty()) {
    std::vector<std::string> reasons;
    for (const auto& [reason, count] : not_written_)
      reasons.push_back(concat(reason, " (", count, ")"));
    throw Error("AITemplate has no word for parts of the graph", ErrorKind::Unsupported)
        .got(join(reasons, "; "));
  }
  for (const ValueId id : graph_.outputs()) tensors_[tensor_of(id)].is_output = true;
  name_operations();
  make_rows();
  add_layout_notes();
  add_positions();
  return std::move(dump_);
}

// ---- tensors ----

// Parses "1 8 64 at x[0] bias[0]": the values of a user-named dim and its occurrences.
void DumpExporter::read_dim_notes() {
  const std::string prefix = dim_metadata_key("");
  for (const auto& [key, note] : graph_.metadata) {
    if (key.rfind(prefix, 0) != 0 || c_safe(key.substr(prefix.size())) != key.substr(prefix.size()))
      continue;
    DimRow row;
    row.name = key.substr(prefix.size());
    bool is_place = false, is_sound = true;
    std::vector<std::pair<std::string, std::size_t>> places;
    for (const std::string& word : split(note, ' ')) {
      const std::size_t bracket = word.find('[');
      if (word == "at") {
        is_place = true;
      } else if (const auto number = is_place ? std::nullopt : parse_integer(word)) {
        row.values.push_back(*number);
      } else if (bracket != std::string::npos && word.back() == ']') {
        const auto axis = parse_integer(word.substr(bracket + 1, word.size() - bracket - 2));
        is_sound = is_sound && axis && *axis >= 0;
        if (is_sound) places.emplace_back(word.substr(0, bracket), static_cast<std::size_t>(*axis));
      } else {
        is_sound = false;
      }
    }
    if (!is_sound || row.values.empty() || row.values.size() > 1000 ||
        !std::is_sorted(row.values.begin(), row.values.end())) {
      continue;  // metadata from another writer
    }
    extents_.push_back({std::move(row)});
    for (const auto& place : places) noted_.emplace(place, extents_.size() - 1);
  }
}

std::string DumpExporter::unique_name(const std::string& wanted) {
  std::string name = c_safe(wanted);
  while (!taken_names_.insert(name).second) name = concat(c_safe(wanted), "_", taken_names_.size());
  return name;
}

std::size_t DumpExporter::new_extent(const Dim& exact) {
  const Dim dim = with_safe_symbols(exact);
  DimRow row;
  if (dim.is_constant()) {
    row.values = {dim.constant()};
    row.symbolic_value = dim.constant();
    extents_.push_back({std::move(row)});
    return extents_.size() - 1;
  }
  const std::string formula = print_formula(dim);
  const auto [known, is_new] = symbolic_extents_.try_emplace(formula, extents_.size());
  if (is_new) {
    const Range range = dim.range();
    row.values = {std::max<std::int64_t>(range.lo, 0),
                  std::clamp<std::int64_t>(range.hi, 0, kMaxExtent)};
    row.symbolic_value = formula;
    if (dim.symbol_name()) row.name = formula;
    extents_.push_back({std::move(row)});
  }
  return known->second;
}

std::vector<std::size_t> DumpExporter::source_extents(const std::string& name, const Dims& dims) {
  std::vector<std::size_t> list;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    const auto note = noted_.find({name, axis});
    if (note != noted_.end()) {
      DimRow& row = extents_[note->second].row;
      const Dim& dim = dims[axis];
      const bool fits = row.least() == dim.range().lo && row.greatest() == dim.range().hi &&
                        row.is_static() == dim.is_constant();
      if (fits && dim.is_constant()) {
        row.symbolic_value = dim.constant();
        list.push_back(note->second);
        continue;
      }
      const std::string formula = print_formula(with_safe_symbols(dim));
      const auto known = symbolic_extents_.find(formula);
      if (fits && (known == symbolic_extents_.end() || known->second == note->second)) {
        row.symbolic_value = formula;
        symbolic_extents_.emplace(formula, note->second);
        list.push_back(note->second);
        continue;
      }
    }
    list.push_back(new_extent(dims[axis]));
  }
  return list;
}

// A number shares the extent of the operand that it originates from; equal formulas share one
// extent everywhere.
std::vector<std::size_t> DumpExporter::result_extents(const Dims& dims,
                                                      const std::vector<std::size_t>& operands,
                                                      const Origins& origins) {
  std::vector<std::size_t> list;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    const auto& origin = axis < origins.size() ? origins[axis] : std::nullopt;
    if (dims[axis].is_constant() && origin && origin->first < operands.size()) {
      const Tensor& operand = tensors_[operands[origin->first]];
      const bool is_there = origin->second < operand.extents.size();
      const DimRow* row = is_there ? &extents_[operand.extents[origin->second]].row : nullptr;
      if (row != nullptr && row->is_static() && row->least() == dims[axis].constant()) {
        list.push_back(operand.extents[origin->second]);
        continue;
      }
    }
    list.push_back(new_extent(dims[axis]));
  }
  return list;
}

// `extents_of` maps the tensor's name and dims to extents.
template <class ExtentsOf>
std::size_t DumpExporter::add_tensor(ValueId id, const ExtentsOf& extents_of) {
  const Value& value = graph_.value(id);
  Tensor tensor;
  tensor.value = id;
  tensor.name = unique_name(value.name);
  if (tensor.name != value.name) tensor.original_name = value.name;
  if (!value.type.is_tensor()) {
    ++not_written_[concat("values of type ", to_string(value.type))];
  } else {
    tensor.dtype = value.type.tensor().dtype;
    tensor.extents = extents_of(tensor.name, value.type.tensor().dims);
  }
  tensors_.push_back(std::move(tensor));
  tensor_of_.emplace(id, tensors_.size() - 1);
  return tensors_.size() - 1;
}

std::size_t DumpExporter::add_value(ValueId id) {
  const std::size_t made = add_tensor(
      id, [&](const std::string& name, const Dims& dims) { return source_extents(name, dims); });
  tensors_[made].is_input = !graph_.value(id).producer;
  tensors_[made].constant = graph_.constant_of(id);
  return made;
}

std::vector<DimRow> DumpExporter::shape_of(std::size_t tensor) const {
  std::vector<DimRow> rows;
  for (const std::size_t extent : tensors_[tensor].extents) rows.push_back(extents_[extent].row);
  return rows;
}

// ---- operations ----

std::int64_t DumpExporter::depth_of(const Operation& operation) const {
  std::int64_t depth = 0;
  for (const std::size_t input : operation.inputs) depth = std::max(depth, tensors_[input].depth);
  return depth;
}

std::size_t DumpExporter::add_made(Operation operation) {
  const std::int64_t depth = depth_of(operation);
  for (const std::size_t output : operation.outputs) tensors_[output].depth = depth + 1;
  operations_.push_back(std::move(operation));
  return operations_.size() - 1;
}

std::size_t DumpExporter::add(Operation operation, const std::vector<ValueId>& results,
                              const std::vector<Origins>& origins) {
  for (std::size_t k = 0; k < results.size(); ++k) {
    operation.outputs.push_back(add_tensor(results[k], [&](const std::string&, const Dims& dims) {
      return result_extents(dims, operation.inputs, k < origins.size() ? origins[k] : Origins());
    }));
  }
  return add_made(std::move(operation));
}

// ---- the dump ----

SortGraph DumpExporter::sort_graph(bool with_members) const {
  SortGraph graph;
  graph.tensors.resize(tensors_.size());
  graph.operators.resize(operations_.size());
  for (std::size_t k = 0; k < tensors_.size(); ++k) {
    std::uint64_t bytes =
        std::max<std::uint64_t>(1, static_cast<std::uint64_t>(info(tensors_[k].dtype).bits) / 8);
    for (const std::size_t extent : tensors_[k].extents) {
      bytes =
          saturating_product(bytes, static_cast<std::uint64_t>(extents_[extent].row.greatest()));
    }
    graph.tensors[k].bytes = bytes;
    graph.tensors[k].depth = tensors_[k].depth;
  }
  // Groups follow all other operations and take the positions of their members.
  for (const bool are_groups : {false, true}) {
    for (std::size_t k = 0; k < operations_.size(); ++k) {
      const Operation& operation = operations_[k];
      const bool is_group = !operation.members.empty();
      const bool counts =
          with_members ? !is_group && !are_groups : is_group == are_groups && !operation.is_member;
      if (!counts) continue;
      graph.operators[k] = {operation.inputs, operation.outputs};
      std::vector<std::size_t> inputs = operation.inputs;
      std::sort(inputs.begin(), inputs.end());
      inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
      for (const std::size_t input : inputs) graph.tensors[input].readers.push_back(k);
      for (const std::size_t output : operation.outputs) graph.tensors[output].writers.push_back(k);
    }
  }
  for (const ValueId id : graph_.outputs()) graph.outputs.push_back(tensor_of_.at(id));
  return graph;
}

void DumpExporter::name_operations() {
  std::size_t counter = 0;
  for (const bool with_members : {true, false}) {
    const SortGraph graph = sort_graph(with_members);
    order_ = sorted_tensors(graph);
    std::unordered_map<std::size_t, std::size_t> outputs_named;
    for (const std::size_t index : order_) {
      Tensor& tensor = tensors_[index];
      for (const std::size_t writer : graph.tensors[index].writers) {
        OperatorRow& row = operations_[writer].row;
        if (!row.name) row.name = unique_name(concat(row.op, "_", counter++));
        if (tensor.name.empty())
          tensor.name = unique_name(concat(*row.name, "_", outputs_named[writer]++));
      }
      for (std::size_t axis = 0; axis < tensor.extents.size(); ++axis) {
        auto& name = extents_[tensor.extents[axis]].row.name;
        if (!name) name = concat(tensor.name, "_dim_", axis);
      }
    }
  }
}

std::vector<std::string> DumpExporter::names_of(const std::vector<std::size_t>& tensors) const {
  std::vector<std::string> names;
  for (const std::size_t tensor : tensors) names.push_back(tensors_[tensor].name);
  return names;
}

AccessorRow DumpExporter::accessor_of(std::size_t tensor) const {
  AccessorRow row;
  row.original_shapes = shape_of(tensor);
  row.tensor_dtype = dtype_name(tensors_[tensor].dtype);
  row.dim_mapping.emplace();
  for (std::size_t k = 0; k < row.original_shapes.size(); ++k) {
    const std::vector<std::int64_t> axis{static_cast<std::int64_t>(k)};
    row.dim_mapping->emplace_back(axis, axis);
  }
  return row;
}

OperatorRow DumpExporter::operator_row(const Operation& operation) const {
  OperatorRow row = operation.row;
  row.original_name = row.name;
  row.depth = depth_of(operation);
  if (!row.has_profiler) row.has_profiler = false;
  row.inputs = names_of(operation.inputs);
  row.outputs = names_of(operation.outputs);
  if (!operation.args.empty()) {
    row.args.emplace();
    for (const std::size_t arg : operation.args) {
      row.args->push_back(arg == kNone ? std::nullopt : std::optional(tensors_[arg].name));
    }
  }
  if (operation.keeps_original_inputs) {
    row.original_inputs.emplace(row.inputs.begin(), row.inputs.end());
  }
  if (operation.keeps_original_outputs) {
    row.original_outputs.emplace();
    for (const std::size_t output : operation.outputs)
      row.original_outputs->push_back(rows_[output]);
  }
  const auto accessors = [&](const std::vector<std::size_t>& tensors, std::size_t count) {
    std::vector<AccessorRow> list;
    for (std::size_t k = 0; k < count; ++k) list.push_back(accessor_of(tensors[k]));
    return list;
  };
  if (operation.input_accessors > 0)
    row.input_accessors = accessors(operation.inputs, operation.input_accessors);
  if (operation.output_accessors > 0)
    row.output_accessors = accessors(operation.outputs, operation.output_accessors);
  for (const std::size_t member : operation.members)
    row.elementwise_ops.push_back(operator_row(operations_[member]));
  // Extents that were named after the row was created.
  for (auto& [key, value] : row.further) {
    const bool is_reshape = row.op == "reshape" && key == "shape";
    const bool is_layer_norm = row.op == "layernorm" && key == "normalized_shape";
    if (!is_reshape && !is_layer_norm) continue;
    const std::vector<DimRow> shape = shape_of(operation.outputs[0]);
    PythonValue list = PythonValue::of(Kind::List);
    const std::size_t start =
        is_reshape ? 0 : shape.size() - static_cast<std::size_t>(value.integer);
    for (std::size_t k = start; k < shape.size(); ++k) list.items.push_back(to_python(shape[k]));
    value = std::move(list);
  }
  return row;
}

void DumpExporter::make_rows() {
  const SortGraph graph = sort_graph(false);
  rows_.resize(tensors_.size());
  std::vector<bool> is_listed(tensors_.size(), false), is_written(operations_.size(), false);
  for (const std::size_t index : order_) is_listed[index] = true;
  for (const std::size_t index : order_) {
    const Tensor& tensor = tensors_[index];
    TensorRow& row = rows_[index];
    row.name = tensor.name;
    if (!tensor.original_name.empty()) row.original_name = tensor.original_name;
    row.dtype = dtype_name(tensor.dtype);
    row.shape = shape_of(index);
    row.depth = tensor.depth;
    for (const std::size_t writer : graph.tensors[index].writers)
      row.src_ops.push_back(*operations_[writer].row.name);
    for (const std::size_t reader : graph.tensors[index].readers) {
      const auto& outputs = operations_[reader].outputs;
      const bool is_needed =
          std::any_of(outputs.begin(), outputs.end(), [&](std::size_t t) { return is_listed[t]; });
      if (is_needed) row.dst_ops.push_back(*operations_[reader].row.name);
    }
    row.is_input = tensor.is_input;
    row.is_output = tensor.is_output;
    row.is_param = tensor.constant != nullptr;
    if (tensor.constant != nullptr) {
      const Constant& constant = *tensor.constant;
      const bool is_number = constant.shape().empty() && constant.kind() == Constant::Kind::Dense;
      if (is_number && (is_float(constant.dtype()))) {
        row.value = PythonValue::real_number(constant.stored().real_at(0));
      } else if (is_number && is_integer(constant.dtype())) {
        row.value = PythonValue::number(constant.stored().integer_at(0));
      } else {
        row.data = data_text(constant);
      }
    }
  }
  mark_views(order_);
  for (const std::size_t index : order_) {
    dump_.tensors.push_back(rows_[index]);
    for (const std::size_t writer : graph.tensors[index].writers) {
      if (is_written[writer]) continue;
      is_written[writer] = true;
      dump_.operators.push_back(operator_row(operations_[writer]));
    }
  }
}

// Propagates flags between views and their base tensors, and those of external tensors.
void DumpExporter::mark_views(const std::vector<std::size_t>& order) {
  for (auto index = order.rbegin(); index != order.rend(); ++index) {
    const Tensor& tensor = tensors_[*index];
    if (tensor.view_of == kNone) continue;
    rows_[tensor.view_of].has_output_aliases = tensor.is_output || rows_[*index].has_output_aliases;
  }
  std::vector<std::size_t> external(tensors_.size(), kNone);
  for (const std::size_t index : order) {
    const std::size_t base = tensors_[index].view_of;
    if (base == kNone) continue;
    const bool is_outside = rows_[base].src_ops.empty() || rows_[base].is_output;
    external[index] = external[base] != kNone ? external[base] : is_outside ? base : kNone;
    rows_[index].is_view_of = {rows_[base]};
    if (external[index] != kNone) rows_[index].external_tensor = {rows_[external[index]]};
  }
}

// Annotates tensors whose layout a reader could not infer.
void DumpExporter::add_layout_notes() {
  const std::map<std::string, std::string> asked = requested_layouts(dump_);
  for (std::size_t k = 0; k < order_.size(); ++k) {
    const Tensor& tensor = tensors_[order_[k]];
    TensorRow& row = dump_.tensors[k];
    if (!row.src_ops.empty() || !tensor.value) continue;
    const std::string& layout = graph_.value(tensor.value).type.tensor().layout.text();
    const auto found = asked.find(*row.name);
    if ((found == asked.end() ? "" : found->second) == layout) continue;
    row.further.emplace_back("tenon_layout", PythonValue::string(layout));
  }
}

// Annotates the positions of inputs and outputs, since the dump sorts tensors.
void DumpExporter::add_positions() {
  for (const bool are_inputs : {true, false}) {
    const std::vector<ValueId>& ports = are_inputs ? graph_.inputs() : graph_.outputs();
    std::vector<std::size_t> places;  // position of each listed tensor in the graph's order
    for (const ValueId id : ports) {
      const auto found = std::find(order_.begin(), order_.end(), tensor_of(id));
      if (found != order_.end()) places.push_back(static_cast<std::size_t>(found - order_.begin()));
    }
    if (std::is_sorted(places.begin(), places.end())) continue;
    for (std::size_t k = 0; k < places.size(); ++k) {
      dump_.tensors[places[k]].further.emplace_back(
          are_inputs ? kInputKey : kOutputKey, PythonValue::number(static_cast<std::int64_t>(k)));
    }
  }
}

Dump export_dump(const Graph& graph, const NativeNodes& own) {
  return DumpExporter(graph, own).run();
}

}  // namespace tenon::documents::aitemplate
