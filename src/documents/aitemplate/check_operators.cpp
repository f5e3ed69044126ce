#include "base/error.h"
#include "base/text.h"
#include "documents/aitemplate/checker.h"
#include "documents/aitemplate/import.h"
#include "documents/aitemplate/kernel_facts.h"
#include "documents/aitemplate/operator_import.h"
#include "ir/graph.h"

#include <algorithm>
#include <map>
#include <unordered_set>

namespace tenon::documents::aitemplate {
namespace {

using Kind = PythonValue::Kind;
using Names = std::vector<std::optional<std::string>>;

std::vector<std::string> texts(const Names& names) {
  std::vector<std::string> list;
  for (const auto& name : names) list.push_back(name.value_or("None"));
  return list;
}

PythonValue shape_value(const std::vector<DimRow>& dims) {
  PythonValue list = PythonValue::of(Kind::List);
  for (const DimRow& dim : dims) list.items.push_back(to_python(dim));
  return list;
}

}  // namespace

const std::vector<DimRow>& DumpChecker::input_shape(const OperatorRow& row, std::size_t k) const {
  return shape_seen(row.input_accessors, k, tensor(row.inputs[k]));
}

const std::vector<DimRow>& DumpChecker::output_shape(const OperatorRow& row, std::size_t k) const {
  return shape_seen(row.output_accessors, k, tensor(row.outputs[k]));
}

void DumpChecker::check_operator(std::size_t index) {
  const OperatorRow& row = dump_.operators[index];
  const Path path = operator_path(index);
  std::int64_t depth = 0;
  for (std::size_t k = 0; k < row.inputs.size(); ++k) {
    depth = std::max(depth, tensor(row.inputs[k]).depth + is_moved(row.input_accessors, k));
  }
  compare_depth(path / "depth", row.depth, depth);
  compare("flags", path / "nop", std::string(row.is_nop ? "True" : "False"), std::string("False"));
  check_names(row, path);
  check_accessors(row, path);
  for (std::size_t k = 0; row.original_outputs && k < row.original_outputs->size(); ++k) {
    const Path original = path / "original_outputs" / k;
    check_nested((*row.original_outputs)[k], original);
    if (k >= row.outputs.size() || !row.output_accessors || k >= row.output_accessors->size())
      continue;
    compare_depth(original / "depth", (*row.original_outputs)[k].depth, depth_after(row, k));
    compare("element type", original / "dtype", (*row.original_outputs)[k].dtype,
            tensor(row.outputs[k]).dtype);
    if ((*row.original_outputs)[k].shape.size() ==
        (*row.output_accessors)[k].original_shapes.size()) {
      compare_values("accessors", original / "shape", shape_value((*row.original_outputs)[k].shape),
                     shape_value((*row.output_accessors)[k].original_shapes));
    }
  }
  if (!row.elementwise_ops.empty()) {
    check_group(row, path);
    check_group_dims(row, path);
  }
  if (row.func) check_func(row, path);
  check_shapes(row, path);
  const std::optional<Composite> composite =
      row.find(kOwnKey) ? std::nullopt : parse_composite(row.op);
  if (composite && composite->is_convolution()) {
    check_members(row, path, {"stride", "pad", "dilate", "group", "CO", "KH", "KW"});
    check_convolution(row, *composite, path);
  }
  if (composite && !composite->is_convolution()) check_gemm(row, *composite, path);
  if (row.op == "max_pool2d" || row.op == "avg_pool2d") {
    check_members(row, path, {"stride", "pad", "kernel_size"});
    check_pool(row, path);
  }
  check_other(row, path);
}

// Attributes that occur together: if some are present, all must be.
void DumpChecker::check_members(const OperatorRow& row, const Path& path,
                                std::initializer_list<std::string_view> names) {
  const auto has = [&](std::string_view name) { return row.find(name) != nullptr; };
  if (std::none_of(names.begin(), names.end(), has)) return;
  for (const std::string_view name : names) {
    if (has(name)) {
      findings_.hold("attributes");
      continue;
    }
    std::vector<std::string> given;
    for (const auto& [key, value] : row.further) given.push_back(key);
    findings_.miss(
        "attributes", [&] { return place(path); }, concat("no '", name, "'"),
        concat("'", name, "' ", suggest_name(name, given)));
  }
}

// Checks names <kind>_<counter>. An inner operator of a fused one may share the name of a later
// operator.
void DumpChecker::check_names(const OperatorRow& row, const Path& path) {
  const auto counter_of = [&](const std::string& name) -> std::optional<std::int64_t> {
    for (const std::string& prefix : {row.op + "_", "ait_" + row.op + "_"}) {
      if (name.rfind(prefix, 0) != 0) continue;
      const std::string rest = name.substr(prefix.size());
      // A name that was taken gets a second number as suffix.
      const auto number = parse_integer(rest.substr(0, rest.find('_')));
      if (number && *number >= 0) return number;
    }
    return std::nullopt;
  };
  const std::string name = row.name.value_or("None");
  findings_.require(
      counter_of(name).has_value(), "names", [&] { return place(path / "name"); }, name,
      concat(row.op, "_ and a number"));
  if (!row.original_name || *row.original_name == name) {
    if (row.original_name) findings_.hold("names");
    return;
  }
  const auto shared = by_original_name_.find(name);
  const bool is_there =
      shared != by_original_name_.end() && dump_.operators[shared->second].op == row.op;
  findings_.require(
      is_there, "names", [&] { return place(path / "original_name"); }, *row.original_name, name);
}

void DumpChecker::check_func(const OperatorRow& row, const Path& path) {
  const FuncInfo* func = find_func(row.func->name);
  if (func == nullptr) {
    findings_.miss(
        "functions", [&] { return place(path / "func"); }, row.func->name, "a known function");
    return;
  }
  compare("functions", path / "func", row.func->number, func->number);
  if (!row.args) return;
  std::vector<std::string> tensors;
  for (const auto& arg : *row.args) {
    if (arg) tensors.push_back(*arg);
  }
  compare_lists("groups", path / "inputs", row.inputs, tensors);
}

// The inner operators determine the operands and results of a group.
void DumpChecker::check_group(const OperatorRow& row, const Path& path) {
  std::map<std::string, std::int64_t> depths;
  std::unordered_set<std::string> made;
  std::vector<std::string> inputs;
  std::unordered_set<std::string> seen, given(row.outputs.begin(), row.outputs.end());
  for (std::size_t k = 0; row.original_outputs && k < row.original_outputs->size(); ++k) {
    given.insert((*row.original_outputs)[k].name.value_or(""));
  }
  const Names originals = row.original_inputs.value_or(Names(row.inputs.begin(), row.inputs.end()));
  for (std::size_t k = 0; k < originals.size() && k < row.inputs.size(); ++k) {
    if (originals[k])
      depths[*originals[k]] = tensor(row.inputs[k]).depth + is_moved(row.input_accessors, k);
  }
  for (std::size_t k = 0; k < row.elementwise_ops.size(); ++k) {
    const OperatorRow& inner = row.elementwise_ops[k];
    const Path inner_path = path / "elementwise_ops" / k;
    std::int64_t depth = 0;
    bool is_known = true;
    for (const std::string& name : inner.inputs) {
      is_known = is_known && depths.contains(name);
      depth = std::max(depth, depths.contains(name) ? depths[name] : 0);
      if (!made.contains(name) && seen.insert(name).second) inputs.push_back(name);
    }
    if (is_known) compare_depth(inner_path / "depth", inner.depth, depth);
    for (const std::string& name : inner.outputs) {
      depths[name] = inner.depth + 1;
      made.insert(name);
    }
    check_names(inner, inner_path);
    if (inner.func) check_func(inner, inner_path);
    for (const std::string& name : inner.outputs) {
      const bool is_inside =
          !tensors_.contains(name) && name.rfind(inner.name.value_or("") + "_", 0) == 0;
      compare("groups", inner_path / "outputs", name,
              is_inside || given.contains(name)
                  ? name
                  : concat(inner.name.value_or(""), "_0 or an output"));
    }
  }
  std::vector<std::string> claimed = texts(originals);
  std::sort(claimed.begin(), claimed.end());
  std::sort(inputs.begin(), inputs.end());
  compare_lists("groups", path / "original_inputs", claimed, inputs);
  const bool has_strides =
      (row.input_accessors &&
       std::any_of(row.input_accessors->begin(), row.input_accessors->end(),
                   [](const AccessorRow& a) { return a.actual_shapes.has_value(); }));
  if (row.original_inputs && !has_strides)
    compare_lists("groups", path / "inputs", row.inputs, texts(originals));
}

// An elementwise result shares the dims of its operands.
void DumpChecker::check_group_dims(const OperatorRow& row, const Path& path) {
  for (std::size_t k = 0; k < row.outputs.size(); ++k) {
    const std::vector<DimRow>& result = output_shape(row, k);
    for (std::size_t axis = 0; axis < result.size(); ++axis) {
      std::vector<std::string> names;
      for (std::size_t j = 0; j < row.inputs.size(); ++j) {
        const std::vector<DimRow>& operand = input_shape(row, j);
        if (operand.size() + axis < result.size()) continue;
        names.push_back(operand[operand.size() + axis - result.size()].name.value_or("None"));
      }
      const std::string says = result[axis].name.value_or("None");
      if (std::find(names.begin(), names.end(), says) != names.end()) {
        findings_.hold("names of dims");
      } else {
        const bool has_accessor = row.output_accessors && k < row.output_accessors->size();
        const Path shape = has_accessor ? path / "output_accessors" / k / "original_shapes"
                                        : tensor_path(tensors_.at(row.outputs[k])) / "shape";
        findings_.miss(
            "names of dims", [&] { return place(shape / axis / "name"); }, says,
            join(names, " or "));
      }
    }
  }
}

// ---- shapes ----

// Compares with Tenon's shape inference, operator by operator.
void DumpChecker::check_shapes(const OperatorRow& row, const Path& path) {
  if (row.find(kOwnKey) != nullptr || !OperatorImport::knows(row)) return;
  const bool is_rest = row.op == "concatenate" && row.original_inputs &&
                       row.original_inputs->size() > row.inputs.size();
  if (is_rest) return;
  const auto refuse = [&](const std::string& reason) {
    std::vector<std::string> shapes;
    for (std::size_t k = 0; k < row.inputs.size(); ++k) {
      std::vector<std::string> dims;
      for (const DimRow& dim : input_shape(row, k)) dims.push_back(dim_text(dim));
      shapes.push_back("[" + join(dims, ", ") + "]");
    }
    findings_.miss(
        "shapes", [&] { return place(path); }, join(shapes, ", "), reason);
  };
  try {
    Builder build;
    std::vector<OperatorImport::Operand> operands;
    for (std::size_t k = 0; k < row.inputs.size(); ++k) {
      const auto dtype = dtype_of(tensor(row.inputs[k]).dtype);
      if (!dtype) return;
      operands.push_back(
          {build.input(concat("x", k), TensorType{*dtype, dims_.dims(input_shape(row, k)), {}}),
           false});
    }
    std::vector<std::vector<DimRow>> outputs;
    for (std::size_t k = 0; k < row.outputs.size(); ++k) outputs.push_back(output_shape(row, k));
    OperatorImport import(row, dims_, build, std::move(operands), outputs);
    const std::vector<Var> results = import.run();
    if (results.size() != row.outputs.size()) {
      refuse(concat(results.size(), " results"));
      return;
    }
    for (std::size_t k = 0; k < results.size(); ++k) {
      const TensorType& type = build.type(results[k]).tensor();
      const bool has_accessor = row.output_accessors && k < row.output_accessors->size();
      const Path shape = has_accessor ? path / "output_accessors" / k / "original_shapes"
                                      : tensor_path(tensors_.at(row.outputs[k])) / "shape";
      compare("element type", tensor_path(tensors_.at(row.outputs[k])) / "dtype",
              tensor(row.outputs[k]).dtype, dtype_name(type.dtype));
      compare("shapes", shape, outputs[k].size(), type.dims.size());
      for (std::size_t axis = 0; axis < std::min(outputs[k].size(), type.dims.size()); ++axis) {
        compare("shapes", shape / axis / "values", dim_text(outputs[k][axis]),
                to_string(type.dims[axis]));
      }
    }
  } catch (const UnsupportedOperator&) {
    return;
  } catch (const Error& error) {
    refuse(error.summary());
  }
}

// Prints dims as in a dump, with symbols as safe names.
static std::string dims_text(const Dims& dims) {
  SymbolRanges symbols;
  for (const Dim& dim : dims) dim.collect_symbols(symbols);
  DimBindings safe;
  for (const auto& [name, range] : symbols) safe.emplace(name, Dim::symbol(c_safe(name), range));
  return to_string(substitute(dims, safe));
}

// Tenon's native operators need layouts, which are only known for the whole graph.
void DumpChecker::check_tenon_shapes() {
  const bool has_any =
      std::any_of(dump_.operators.begin(), dump_.operators.end(),
                  [](const OperatorRow& row) { return row.find(kOwnKey) != nullptr; });
  if (!has_any) return;
  try {
    const Graph graph = import_dump(dump_, "dump");
    for (const OperatorRow& row : dump_.operators) {
      if (row.find(kOwnKey) == nullptr) continue;
      for (const std::string& name : row.outputs) {
        const TensorRow& listed = tensor(name);
        const ValueId value = graph.find(listed.original_name.value_or(name));
        if (!value || !graph.value(value).type.is_tensor()) continue;
        std::vector<std::string> says;
        for (const DimRow& dim : listed.shape) says.push_back(dim_text(dim));
        compare("shapes", tensor_path(tensors_.at(name)) / "shape", "[" + join(says, ", ") + "]",
                dims_text(graph.value(value).type.tensor().dims));
      }
    }
  } catch (const Error& error) {
    findings_.miss(
        "shapes", [&] { return std::string("the whole graph"); }, "a graph", error.summary());
  }
}

void DumpChecker::check_pool(const OperatorRow& row, const Path& path) {
  if (const PythonValue* size = row.find("kernel_size");
      size != nullptr && size->is(Kind::Integer)) {
    compare_attribute("kernels", row, path, "KH", *size);
    compare_attribute("kernels", row, path, "KW", *size);
  }
  compare_attribute("kernels", row, path, "reduce_func",
                    PythonValue::string(row.op == "max_pool2d" ? "max" : "avg"));
  for (std::size_t k = 0; row.exec_path && k < row.exec_path->entries.size(); ++k) {
    compare("conditions of kernels", path / "exec_path" / k, row.exec_path->entries[k].condition,
            std::string("true"));
  }
}

void DumpChecker::check_other(const OperatorRow& row, const Path& path) {
  if (row.op == "reshape" && row.inputs.size() == 1) {
    const PythonValue* shape = row.find("shape");
    const bool has_objects =
        shape != nullptr && std::all_of(shape->items.begin(), shape->items.end(),
                                        [](const PythonValue& v) { return v.is(Kind::Object); });
    if (has_objects)
      compare_attribute("views", row, path, "shape", shape_value(output_shape(row, 0)));
  }
  if (row.op == "layernorm" && !row.inputs.empty()) {
    const PythonValue* normalized = row.find("normalized_shape");
    const std::vector<DimRow>& x = input_shape(row, 0);
    if (normalized != nullptr && normalized->items.size() <= x.size()) {
      std::vector<DimRow> dims{x.end() - static_cast<std::ptrdiff_t>(normalized->items.size()),
                               x.end()};
      // Dims passed to a module are separate objects without names.
      for (std::size_t k = 0; k < dims.size(); ++k) {
        const PythonValue* name = normalized->items[k].find("name");
        if (name != nullptr && name->is(Kind::None)) dims[k].name.reset();
      }
      compare_attribute("reductions", row, path, "normalized_shape", shape_value(dims));
    }
  }
  if ((row.op == "groupnorm" || row.op == "groupnorm_swish") && !row.inputs.empty()) {
    const std::vector<DimRow>& x = input_shape(row, 0);
    const PythonValue* groups = row.find("num_groups");
    if (!x.empty() && x.back().is_static()) {
      compare_attribute("reductions", row, path, "num_channels",
                        PythonValue::number(x.back().least()));
    }
    if (!x.empty() && groups != nullptr && groups->is(Kind::Integer) && groups->integer > 0 &&
        groups->integer < (1 << 24) && x[0].greatest() < (1 << 24)) {
      compare_attribute("reductions", row, path, "workspace",
                        PythonValue::number(group_norm_workspace(x[0], groups->integer)));
    }
  }
  if (row.op == "softmax" && !row.inputs.empty()) {
    compare_attribute(
        "reductions", row, path, "dim",
        PythonValue::number(static_cast<std::int64_t>(input_shape(row, 0).size()) - 1));
  }
  const auto masks = [&](std::string_view key, std::size_t count, std::size_t made) {
    const PythonValue* list = row.find(key);
    if (list == nullptr) return;
    compare("masks", path / key, list->items.size(), count);
    const auto is_true = [](const PythonValue& v) { return v.is(Kind::Bool) && v.integer != 0; };
    compare("masks", path / key, std::count_if(list->items.begin(), list->items.end(), is_true),
            static_cast<std::ptrdiff_t>(made));
  };
  if (row.original_inputs) masks("input_masks", row.original_inputs->size(), row.inputs.size());
  if (row.original_outputs) masks("output_masks", row.original_outputs->size(), row.outputs.size());
}

}  // namespace tenon::documents::aitemplate
