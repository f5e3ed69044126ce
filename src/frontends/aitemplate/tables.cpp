#include "frontends/aitemplate/tables.h"

#include <algorithm>

namespace tenon::aitemplate {
namespace {

using Kind = PythonValue::Kind;

// The members of an object: sorted when it is printed, so they are set in any order.
class ObjectWriter {
 public:
  explicit ObjectWriter(const std::vector<std::string>* absent = nullptr) : absent_(absent) {
    object_.kind = Kind::Object;
  }

  void set(std::string_view key, PythonValue value) {
    const bool is_absent =
        absent_ != nullptr && std::find(absent_->begin(), absent_->end(), key) != absent_->end();
    if (!is_absent) object_.set(key, std::move(value));
  }
  void set(std::string_view key, bool value) { set(key, PythonValue::boolean(value)); }
  void set(std::string_view key, std::int64_t value) { set(key, PythonValue::number(value)); }
  void set(std::string_view key, const std::string& value) { set(key, PythonValue::string(value)); }
  void set(std::string_view key, const std::vector<std::string>& value) {
    set(key, PythonValue::list(value));
  }
  template <class T>
  void set(std::string_view key, const std::optional<T>& value) {
    if (value) {
      set(key, *value);
    } else {
      set(key, PythonValue());
    }
  }
  template <class T>
  void set_rows(std::string_view key, const std::vector<T>& rows) {
    PythonValue list = PythonValue::of(Kind::List);
    for (const T& row : rows) list.items.push_back(to_python(row));
    set(key, std::move(list));
  }
  /// None for no tensor.
  void set_tensor(std::string_view key, const std::vector<TensorRow>& tensor) {
    set(key, tensor.empty() ? PythonValue() : to_python(tensor.front()));
  }
  void add(const std::vector<Member>& further) {
    for (const auto& [key, value] : further) object_.set(key, value);
  }
  PythonValue take() { return std::move(object_); }

 private:
  const std::vector<std::string>* absent_;
  PythonValue object_;
};

PythonValue names_to_python(const std::vector<std::optional<std::string>>& names) {
  PythonValue list = PythonValue::of(Kind::List);
  for (const auto& name : names)
    list.items.push_back(name ? PythonValue::string(*name) : PythonValue());
  return list;
}

PythonValue to_python(const ExecPath& path) {
  PythonValue dict = PythonValue::of(path.is_ordered ? Kind::OrderedDict : Kind::Dict);
  for (const ExecEntry& entry : path.entries) dict.set(entry.condition, entry.choice);
  return dict;
}

}  // namespace

const PythonValue* OperatorRow::find(std::string_view attribute) const {
  const auto found = std::find_if(further.begin(), further.end(),
                                  [&](const Member& each) { return each.first == attribute; });
  return found == further.end() ? nullptr : &found->second;
}

std::optional<std::string> algorithm_of(const ExecEntry& entry) {
  if (entry.choice.is(Kind::Text)) return entry.choice.text;
  const PythonValue* algorithm = entry.choice.is(Kind::Call) ? entry.choice.find("algo") : nullptr;
  if (algorithm == nullptr || !algorithm->is(Kind::Text)) return std::nullopt;
  return algorithm->text;
}

PythonValue to_python(const AccessorRow& row) {
  ObjectWriter object(&row.absent);
  PythonValue mapping;
  if (row.dim_mapping) {
    mapping = PythonValue::of(Kind::List);
    for (const auto& [original, actual] : *row.dim_mapping) {
      mapping.items.push_back(
          PythonValue::of(Kind::Tuple, {PythonValue::list(original), PythonValue::list(actual)}));
    }
  }
  object.set("_dim_mapping", std::move(mapping));
  object.set_rows("original_shapes", row.original_shapes);
  if (row.actual_shapes) {
    object.set_rows("actual_shapes", *row.actual_shapes);
  } else {
    object.set("actual_shapes", PythonValue());
  }
  object.set("offset", row.offset);
  object.set("stride_dim", row.stride_dim);
  object.set("original_total_elements_from_stride_dim", row.original_total_elements);
  object.set("actual_total_elements_from_stride_dim", row.actual_total_elements);
  object.set("is_contiguous", row.is_contiguous);
  object.set("is_from_strided_tensor", row.is_from_strided_tensor);
  object.set("tensor_dtype", row.tensor_dtype);
  object.add(row.further);
  return object.take();
}

PythonValue to_python(const DimRow& row) {
  ObjectWriter object(&row.absent);
  object.set("depth", row.depth);
  object.set("name", row.name);
  object.set("nop", row.is_nop);
  if (const auto* number = std::get_if<std::int64_t>(&row.symbolic_value)) {
    object.set("symbolic_value", *number);
  } else {
    object.set("symbolic_value",
               PythonValue::expression(std::get<std::string>(row.symbolic_value)));
  }
  object.set("values", PythonValue::list(row.values));
  object.add(row.further);
  return object.take();
}

PythonValue to_python(const TensorRow& row) {
  ObjectWriter object(&row.absent);
  object.set("name", row.name);
  object.set("original_name", row.original_name);
  object.set("dtype", row.dtype);
  object.set_rows("shape", row.shape);
  object.set("depth", row.depth);
  object.set("src_ops", row.src_ops);
  object.set("dst_ops", row.dst_ops);
  object.set("nop", row.is_nop);
  object.set("is_input", row.is_input);
  object.set("is_output", row.is_output);
  object.set("is_param", row.is_param);
  object.set("is_internal_constant", row.is_internal_constant);
  object.set("has_output_aliases", row.has_output_aliases);
  object.set("check_nan_and_inf", row.check_nan_and_inf);
  object.set("check_outputs", row.check_outputs);
  object.set("skip_constant_folding", row.skip_constant_folding);
  object.set_tensor("is_view_of", row.is_view_of);
  object.set_tensor("external_tensor", row.external_tensor);
  object.set("value", row.value);
  object.set("data", row.data ? PythonValue::opaque(*row.data) : PythonValue());
  object.set("offset", row.offset);
  object.set("constant_folding_output_idx", row.constant_folding_output_idx);
  object.add(row.further);
  return object.take();
}

PythonValue to_python(const OperatorRow& row) {
  ObjectWriter object;
  object.set("op", row.op);
  object.set("name", row.name);
  if (row.original_name) object.set("original_name", row.original_name);
  object.set("depth", row.depth);
  object.set("nop", row.is_nop);
  if (row.has_profiler) object.set("has_profiler", *row.has_profiler);
  object.set("inputs", row.inputs);
  object.set("outputs", row.outputs);
  if (row.args) object.set("args", names_to_python(*row.args));
  if (row.original_inputs) object.set("original_inputs", names_to_python(*row.original_inputs));
  if (row.original_outputs) object.set_rows("original_outputs", *row.original_outputs);
  if (row.input_accessors) object.set_rows("input_accessors", *row.input_accessors);
  if (row.output_accessors) object.set_rows("output_accessors", *row.output_accessors);
  if (row.func) {
    object.set("func", PythonValue::opaque("<FuncEnum." + row.func->name + ": " +
                                           std::to_string(row.func->number) + ">"));
  }
  if (!row.elementwise_ops.empty()) object.set_rows("elementwise_ops", row.elementwise_ops);
  if (row.exec_path) object.set("exec_path", to_python(*row.exec_path));
  object.add(row.further);
  return object.take();
}

std::string print_dump(const Dump& dump) {
  std::string text = "Tensors: ";
  for (std::size_t k = 0; k < dump.tensors.size(); ++k) {
    text += (k == 0 ? "" : "\n\n") + pretty_print(to_python(dump.tensors[k]), dump.style);
  }
  text += "\n\nOperators: ";
  for (std::size_t k = 0; k < dump.operators.size(); ++k) {
    text += (k == 0 ? "" : "\n\n") + pretty_print(to_python(dump.operators[k]), dump.style);
  }
  return text + "\n\n";
}

}  // namespace tenon::aitemplate
