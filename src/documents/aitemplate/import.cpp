#include "documents/aitemplate/import.h"

#include "base/error.h"
#include "base/text.h"
#include "documents/aitemplate/operator_import.h"
#include "documents/aitemplate/vocabulary.h"
#include "documents/seeded_weight.h"
#include "ir/text.h"
#include "ops/families/movement.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace tenon::documents::aitemplate {
namespace {

using Kind = PythonValue::Kind;

constexpr std::string_view kDimKey = "aitemplate dim ";

// Returns whether the operator's result has the layout of its operands of equal rank.
bool keeps_layout(const OperatorRow& row) {
  return row.op == "elementwise" || row.op == "fused_elementwise" || row.op == "concatenate" ||
         row.op == "identity" || row.op == "groupnorm" || row.op == "groupnorm_swish";
}

// Collects unsupported operators with counts, for one Error.
class Unsupported {
 public:
  void add(const std::string& op, const std::string& reason) {
    ++counts_[concat(op, ": ", reason)];
  }
  void raise(std::string_view source) const {
    if (counts_.empty()) return;
    std::vector<std::string> lines;
    for (const auto& [what, count] : counts_)
      lines.push_back(concat(what, " (", count, count == 1 ? " operator)" : " operators)"));
    throw Error("operators that cannot be imported", ErrorKind::Unsupported)
        .at(source)
        .got(join(lines, "; "));
  }

 private:
  std::map<std::string, std::size_t> counts_;
};

class DumpImporter {
 public:
  DumpImporter(const Dump& dump, std::string_view source)
      : dump_(dump), source_(source), dims_(dump) {
    for (std::size_t k = 0; k < dump.tensors.size(); ++k)
      tensors_.emplace(*dump.tensors[k].name, k);
  }
  Graph run();

 private:
  // Region of a tensor along one axis, written by one operator.
  struct Part {
    std::int64_t axis = 0, start = 0, count = 0;
    Var value;
  };

  std::vector<const TensorRow*> listed(std::string_view key) const;
  void name_values();
  void add_sources();
  Var source_value(const TensorRow& row);
  void import_operator(const OperatorRow& row);
  std::vector<OperatorImport::Operand> operands_of(const OperatorRow& row);
  void bind(const OperatorRow& row, const std::vector<Var>& results);
  void bind_concatenation(const OperatorRow& row);
  void store(const std::string& tensor, Var value);
  void join_parts(const std::string& tensor);
  void give_name(Var value, const std::string& tensor);
  Var read(Var base, const AccessorRow& accessor);
  std::optional<Part> part_of(Var value, const AccessorRow& accessor) const;
  Var in_shape(Var value, const Dims& wanted) const;
  Var value_of(const std::string& tensor) const;
  std::string through_changes(const std::string& tensor, bool& was_changed) const;
  std::string after_changes(const std::string& tensor) const;
  const TensorRow& tensor(const std::string& name) const {
    return dump_.tensors[tensors_.at(name)];
  }
  std::size_t writer_count(const std::string& name) const;
  void add_outputs();
  void note_dim_names();

  const Dump& dump_;
  std::string_view source_;
  DimTable dims_;
  std::unordered_map<std::string, std::size_t> tensors_;
  std::unordered_map<std::string, std::string> names_;  // of values, by tensor
  std::unordered_map<std::string, Var> values_;
  std::unordered_map<std::string, std::vector<Part>> parts_;
  std::unordered_map<std::string, std::size_t> writers_, missing_writers_;
  // Layout changes that the exporter inserted around convolutions: from changed operand to
  // original, from changed result to original.
  std::unordered_map<std::string, std::string> operands_changed_, results_changed_;
  std::unordered_set<std::string> lost_;  // results of unsupported operators
  Builder build_;
  Unsupported unsupported_;
};

Graph DumpImporter::run() {
  for (const OperatorRow& row : dump_.operators) {
    for (const std::string& name : row.outputs) ++writers_[name];
    if (!is_layout_change(row) || row.inputs.size() != 1 || row.outputs.size() != 1) continue;
    const bool is_result = row.find("tenon_layout")->text == "result";
    if (is_result) results_changed_.emplace(row.inputs[0], row.outputs[0]);
    if (!is_result) operands_changed_.emplace(row.outputs[0], row.inputs[0]);
  }
  missing_writers_ = writers_;
  name_values();
  add_sources();
  for (const std::uint32_t k : operators_in_order(dump_)) {
    const OperatorRow& row = dump_.operators[k];
    if (is_layout_change(row)) continue;
    const bool is_lost =
        std::any_of(row.inputs.begin(), row.inputs.end(), [&](const std::string& name) {
          bool was_changed = false;
          return lost_.contains(through_changes(name, was_changed));
        });
    try {
      if (is_lost) {
        if (!OperatorImport::knows(row))
          throw UnsupportedOperator{"there is no such operator in Tenon"};
      } else {
        import_operator(row);
        continue;
      }
    } catch (const UnsupportedOperator& refusal) {
      unsupported_.add(row.op, refusal.reason);
    } catch (const Error& error) {
      Error placed = error;
      if (placed.has_place()) throw placed;
      throw placed.at(source_, ", operator '", *row.name, "' (", row.op, ")");
    }
    for (const std::string& name : row.outputs) lost_.insert(after_changes(name));
  }
  unsupported_.raise(source_);
  add_outputs();
  note_dim_names();
  return build_.take();
}

// Uses the names from before sanitizing for C, if they are unique.
void DumpImporter::name_values() {
  std::unordered_set<std::string> taken;
  for (const TensorRow& row : dump_.tensors) {
    if (!row.original_name) taken.insert(*row.name);
  }
  for (const TensorRow& row : dump_.tensors) {
    const bool has_own = row.original_name && taken.insert(*row.original_name).second;
    names_.emplace(*row.name, has_own ? *row.original_name : *row.name);
  }
}

// Returns tensors in listed order, except those with an annotated input or output position.
std::vector<const TensorRow*> DumpImporter::listed(std::string_view key) const {
  std::vector<const TensorRow*> rows;
  for (const TensorRow& row : dump_.tensors) rows.push_back(&row);
  const auto position = [&](const TensorRow* row) {
    for (const auto& [name, value] : row->further) {
      if (name == key && value.is(Kind::Integer)) return value.integer;
    }
    return std::int64_t{-1};
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const TensorRow* a, const TensorRow* b) {
    return position(a) < position(b);
  });
  return rows;
}

void DumpImporter::add_sources() {
  const std::map<std::string, std::string> layouts = requested_layouts(dump_);
  for (const TensorRow* listed_row : listed(kInputKey)) {
    const TensorRow& row = *listed_row;
    if (writer_count(*row.name) > 0) continue;
    const auto asked = layouts.find(*row.name);
    std::string layout = asked == layouts.end() ? "" : asked->second;
    for (const auto& [key, value] : row.further) {
      if (key == "tenon_layout" && value.is(Kind::Text)) layout = value.text;
    }
    const auto dtype = dtype_of(row.dtype);
    if (!dtype)
      throw Error("there is no such element type")
          .at(source_, ", tensor '", *row.name, "'")
          .got(row.dtype);
    TensorType type{*dtype, {}, {}};
    try {
      type.dims = dims_.dims(row.shape);
      if (!layout.empty()) type.layout = Layout(layout);
    } catch (const Error& error) {
      Error placed = error;
      throw placed.at(source_, ", tensor '", *row.name, "'");
    }
    const std::string& name = names_.at(*row.name);
    if (row.is_input) {
      values_.emplace(*row.name, build_.input(name, type));
      continue;
    }
    const Var made = source_value(row);
    give_name(made, *row.name);
    if (!type.layout.is_empty()) build_.graph().set_type(ValueId(made.id()), type);
    values_.emplace(*row.name, made);
  }
}

// Creates a constant: a number, the elements that Tenon's exporter wrote, or a seeded weight.
Var DumpImporter::source_value(const TensorRow& row) {
  const DType dtype = *dtype_of(row.dtype);
  const Dims dims = dims_.dims(row.shape);
  if (!all_constant(dims)) {
    throw Error("a parameter of varying shape")
        .at(source_, ", tensor '", *row.name, "'")
        .got(to_string(dims));
  }
  const Shape shape = constants(dims);
  if (row.data && row.data->rfind(kConstantMark, 0) == 0) {
    const Constant constant = parse_constant(
        row.data->substr(kConstantMark.size(), row.data->size() - kConstantMark.size() - 1));
    if (constant.dtype() == dtype && constant.shape() == shape) return build_.constant(constant);
  }
  const bool is_number = row.value.is(Kind::Integer) || row.value.is(Kind::Real);
  if (shape.empty() && is_number) {
    const double number =
        row.value.is(Kind::Real) ? row.value.real : static_cast<double>(row.value.integer);
    return build_.constant(Tensor::scalar(dtype, number));
  }
  checked_element_count(shape);
  std::int64_t fan_in = 1;
  for (std::size_t k = 1; k < shape.size(); ++k)
    fan_in = std::min<std::int64_t>(fan_in * std::max<std::int64_t>(shape[k], 1), 1 << 20);
  return build_.constant(
      seeded_weight(dtype, shape, names_.at(*row.name), shape.size() < 2 ? 0 : fan_in));
}

std::size_t DumpImporter::writer_count(const std::string& name) const {
  const auto found = writers_.find(name);
  return found == writers_.end() ? 0 : found->second;
}

// Returns the tensor before its layout change.
std::string DumpImporter::through_changes(const std::string& name, bool& was_changed) const {
  const auto found = operands_changed_.find(name);
  was_changed = found != operands_changed_.end();
  return was_changed ? found->second : name;
}

// Returns the result after its layout change.
std::string DumpImporter::after_changes(const std::string& name) const {
  const auto found = results_changed_.find(name);
  return found == results_changed_.end() ? name : found->second;
}

Var DumpImporter::value_of(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) throw Error("a tensor is read before it is complete").got(name);
  return found->second;
}

std::vector<OperatorImport::Operand> DumpImporter::operands_of(const OperatorRow& row) {
  std::vector<OperatorImport::Operand> operands;
  for (std::size_t k = 0; k < row.inputs.size(); ++k) {
    bool was_changed = false;
    const std::string name = through_changes(row.inputs[k], was_changed);
    Var value = value_of(name);
    if (row.input_accessors && k < row.input_accessors->size())
      value = read(value, (*row.input_accessors)[k]);
    operands.push_back({value, was_changed});
  }
  // A result whose layout is converted back was computed in the operand's layout.
  const bool is_changed_back =
      std::any_of(row.outputs.begin(), row.outputs.end(),
                  [&](const std::string& name) { return after_changes(name) != name; });
  if (is_changed_back) {
    for (auto& operand : operands) operand.keeps_layout = true;
  }
  return operands;
}

void DumpImporter::import_operator(const OperatorRow& row) {
  if (row.op == "concatenate" && row.original_inputs &&
      row.original_inputs->size() > row.inputs.size()) {
    bind_concatenation(row);
    return;
  }
  std::vector<std::vector<DimRow>> outputs;
  for (std::size_t k = 0; k < row.outputs.size(); ++k) {
    const bool has_accessor = row.output_accessors && k < row.output_accessors->size();
    const std::vector<DimRow>& whole = tensor(row.outputs[k]).shape;
    // The accessor of a matrix product may have two axes for operands of any rank.
    const bool is_flat = has_accessor && !(*row.output_accessors)[k].actual_shapes &&
                         (*row.output_accessors)[k].original_shapes.size() != whole.size();
    outputs.push_back(has_accessor && !is_flat ? (*row.output_accessors)[k].original_shapes
                                               : whole);
  }
  OperatorImport import(row, dims_, build_, operands_of(row), std::move(outputs));
  const std::vector<Var> results = import.run();
  if (results.size() != row.outputs.size()) {
    throw Error("the operator gives another number of results")
        .expected(row.outputs.size())
        .got(results.size());
  }
  bind(row, results);
}

void DumpImporter::bind(const OperatorRow& row, const std::vector<Var>& results) {
  for (std::size_t k = 0; k < results.size(); ++k) {
    const std::string name = after_changes(row.outputs[k]);
    const bool has_accessor = row.output_accessors && k < row.output_accessors->size();
    std::optional<Part> part;
    Var value = results[k];
    if (has_accessor) {
      const AccessorRow& accessor = (*row.output_accessors)[k];
      part = part_of(value, accessor);
      if (part) {
        Dims wanted = dims_.dims(*accessor.actual_shapes);
        wanted[static_cast<std::size_t>(part->axis)] = part->count;
        part->value = in_shape(value, wanted);
      } else if (accessor.actual_shapes) {
        value = call_with("reshape", {value}, {{"shape", dims_.dims(*accessor.actual_shapes)}});
      }
    }
    if (part) {
      parts_[name].push_back(*part);
    } else if (writer_count(row.outputs[k]) > 1) {
      throw Error("several operators write all of one tensor").got(name);
    } else {
      store(name, value);
    }
    join_parts(name);
  }
}

// Binds a partial concatenation: other operators write into its result, and the remaining operands
// fill the gaps.
void DumpImporter::bind_concatenation(const OperatorRow& row) {
  const PythonValue* masks = row.find("input_masks");
  const PythonValue* along = row.find("concat_dim");
  if (masks == nullptr || along == nullptr || !along->is(Kind::Integer) ||
      row.outputs.size() != 1 || masks->items.size() != row.original_inputs->size()) {
    throw Error("concatenate: the masks of its operands do not fit");
  }
  std::vector<OperatorImport::Operand> operands = operands_of(row);
  const std::string& name = row.outputs[0];
  for (std::size_t k = 0, next = 0; k < masks->items.size(); ++k) {
    const bool is_copied = masks->items[k].integer != 0;
    Part part{along->integer, -1, 0, {}};
    if (is_copied) {
      if (next >= operands.size()) throw Error("concatenate: fewer operands than masks say");
      part.value = operands[next++].value;
      const Dims& dims = build_.type(part.value).tensor().dims;
      if (part.axis < 0 || static_cast<std::size_t>(part.axis) >= dims.size() ||
          !dims[static_cast<std::size_t>(part.axis)].is_constant()) {
        throw Error("concatenate: there is no such axis");
      }
      part.count = dims[static_cast<std::size_t>(part.axis)].constant();
      parts_[name].push_back(part);
    }
  }
  join_parts(name);
}

void DumpImporter::store(const std::string& name, Var value) {
  give_name(value, name);
  values_.insert_or_assign(name, value);
}

// After the last writer, concatenates all parts in order.
void DumpImporter::join_parts(const std::string& name) {
  std::size_t& missing = missing_writers_[name];
  if (missing > 0) --missing;
  const auto found = parts_.find(name);
  if (missing > 0 || found == parts_.end()) return;
  std::vector<Part> written, floating;
  for (const Part& part : found->second) (part.start < 0 ? floating : written).push_back(part);
  std::sort(written.begin(), written.end(),
            [](const Part& a, const Part& b) { return a.start < b.start; });
  const std::vector<DimRow>& shape = tensor(name).shape;
  const std::int64_t axis = found->second.front().axis;
  if (axis < 0 || static_cast<std::size_t>(axis) >= shape.size())
    throw Error("a tensor has no such axis to write along").got(axis);
  std::vector<Var> pieces;
  std::int64_t position = 0;
  auto next = floating.begin();
  for (std::size_t k = 0; k <= written.size(); ++k) {
    const std::int64_t limit =
        k < written.size() ? written[k].start : shape[static_cast<std::size_t>(axis)].least();
    for (; next != floating.end() && position + next->count <= limit; ++next) {
      pieces.push_back(next->value);
      position += next->count;
    }
    if (position != limit || (k < written.size() && written[k].axis != axis)) {
      throw Error("what operators write does not cover the tensor")
          .got(name, ", position ", position);
    }
    if (k == written.size()) break;
    pieces.push_back(written[k].value);
    position += written[k].count;
  }
  if (next != floating.end()) throw Error("what operators write overlaps").got(name);
  parts_.erase(found);
  store(name, build_.call("concat", pieces, {{"axis", axis}}));
}

// Names a value after its tensor; a value that has the name by coincidence is renamed.
void DumpImporter::give_name(Var value, const std::string& tensor) {
  Graph& graph = build_.graph();
  const auto known = names_.find(tensor);
  const std::string& name = known == names_.end() ? tensor : known->second;
  const ValueId id(value.id());
  if (graph.value(id).name == name) return;
  if (const ValueId other = graph.find(name)) graph.rename(other, graph.free_name(name + "_"));
  graph.rename(id, name);
}

// Returns the number of elements after an axis of a base tensor.
std::int64_t behind(const std::vector<DimRow>& shape, std::int64_t axis) {
  std::int64_t count = 1;
  for (std::size_t k = static_cast<std::size_t>(axis) + 1; k < shape.size(); ++k) {
    if (!shape[k].is_static() || shape[k].least() == 0)
      throw Error("the axes after a strided one vary or are empty");
    if (count > kMaxExtent / shape[k].least()) throw Error("a tensor is too large");
    count *= shape[k].least();
  }
  return count;
}

Var DumpImporter::in_shape(Var value, const Dims& wanted) const {
  if (build_.type(value).tensor().dims == wanted) return value;
  return call_with("reshape", {value}, {{"shape", wanted}});
}

// Returns the region of a tensor that an accessor addresses; nullopt for the whole tensor.
std::optional<DumpImporter::Part> DumpImporter::part_of(Var value,
                                                        const AccessorRow& accessor) const {
  if (!accessor.stride_dim || !accessor.actual_shapes) return std::nullopt;
  const std::int64_t axis = *accessor.stride_dim;
  if (axis < 0 || static_cast<std::size_t>(axis) >= accessor.actual_shapes->size() ||
      !accessor.original_total_elements) {
    throw Error("an accessor's axis does not fit its shape").got(axis);
  }
  const std::int64_t unit = behind(*accessor.actual_shapes, axis);
  return Part{axis, accessor.offset / unit, *accessor.original_total_elements / unit, value};
}

Var DumpImporter::read(Var base, const AccessorRow& accessor) {
  Var value = base;
  if (const auto part = part_of(base, accessor)) {
    value = build_.call("slice", {value},
                        {{"starts", std::vector<std::int64_t>{part->start}},
                         {"ends", std::vector<std::int64_t>{part->start + part->count}},
                         {"axes", std::vector<std::int64_t>{part->axis}}});
  }
  const Dims wanted = dims_.dims(accessor.original_shapes);
  return accessor.actual_shapes ? in_shape(value, wanted) : value;
}

void DumpImporter::add_outputs() {
  for (const TensorRow* row : listed(kOutputKey)) {
    if (!row->is_output) continue;
    bool was_changed = false;
    const auto found = values_.find(through_changes(*row->name, was_changed));
    if (found == values_.end()) throw Error("nobody makes an output").at(source_).got(*row->name);
    build_.graph().add_output(ValueId(found->second.id()));
  }
  if (build_.graph().outputs().empty()) throw Error("no tensor is an output").at(source_);
}

// A graph stores extents without dim names: user-given names go to the metadata.
void DumpImporter::note_dim_names() {
  std::map<std::string, std::string> notes;
  for (const TensorRow& row : dump_.tensors) {
    if (writer_count(*row.name) > 0) continue;
    for (std::size_t k = 0; k < row.shape.size(); ++k) {
      const DimRow& dim = row.shape[k];
      const bool is_own = dim.name == concat(*row.name, "_dim_", k);
      const bool is_plain_symbol = dim.name == symbol_of(dim) && dim.values.size() == 2;
      if (!dim.name || is_own || is_plain_symbol) continue;
      std::string& note = notes[*dim.name];
      if (note.empty()) {
        std::vector<std::string> values;
        for (const std::int64_t value : dim.values) values.push_back(std::to_string(value));
        note = join(values, " ") + " at";
      }
      note += concat(" ", c_safe(names_.at(*row.name)), "[", k, "]");
    }
  }
  for (auto& [name, note] : notes)
    build_.graph().metadata[dim_metadata_key(name)] = std::move(note);
}

}  // namespace

bool is_layout_change(const OperatorRow& row) {
  const PythonValue* mark = row.find("tenon_layout");
  return mark != nullptr && mark->is(Kind::Text);
}

std::string dim_metadata_key(std::string_view dim_name) { return concat(kDimKey, dim_name); }

std::map<std::string, std::string> requested_layouts(const Dump& dump) {
  std::unordered_map<std::string, std::vector<const OperatorRow*>> writers;
  std::unordered_map<std::string, std::size_t> ranks;
  for (const TensorRow& row : dump.tensors) ranks.emplace(*row.name, row.shape.size());
  for (const OperatorRow& row : dump.operators) {
    for (const std::string& name : row.outputs) writers[name].push_back(&row);
  }
  std::map<std::string, std::string> layouts;
  std::vector<std::string> images;
  std::unordered_set<std::string> seen;
  const auto ask = [&](const std::string& name) {
    if (seen.insert(name).second) images.push_back(name);
  };
  for (const OperatorRow& row : dump.operators) {
    if (row.find(kOwnKey) != nullptr) continue;
    const std::optional<Composite> composite = parse_composite(row.op);
    const bool is_convolution = composite && composite->is_convolution();
    const bool is_pool = row.op == "max_pool2d" || row.op == "avg_pool2d";
    if ((is_convolution || is_pool) && !row.inputs.empty()) ask(row.inputs[0]);
    if (is_convolution && row.inputs.size() > 1 && !writers.contains(row.inputs[1])) {
      layouts.emplace(row.inputs[1], weight_layout(ranks[row.inputs[1]]));
    }
  }
  // Walks back through layout-preserving operators to the source tensors.
  while (!images.empty()) {
    const std::string name = images.back();
    images.pop_back();
    const auto found = writers.find(name);
    if (found == writers.end()) {
      if (ranks[name] == 4 || ranks[name] == 5) layouts.emplace(name, image_layout(ranks[name]));
      continue;
    }
    for (const OperatorRow* row : found->second) {
      const bool has_strides =
          row->input_accessors &&
          std::any_of(row->input_accessors->begin(), row->input_accessors->end(),
                      [](const AccessorRow& a) { return a.actual_shapes.has_value(); });
      if (!keeps_layout(*row) || has_strides) continue;
      for (const std::string& input : row->inputs) {
        if (ranks[input] == ranks[name]) ask(input);
      }
    }
  }
  return layouts;
}

Graph import_dump(const Dump& dump, std::string_view source) {
  return DumpImporter(dump, source).run();
}

}  // namespace tenon::documents::aitemplate
