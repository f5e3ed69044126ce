#include "documents/aitemplate/check.h"

#include "base/text.h"
#include "documents/aitemplate/checker.h"
#include "documents/aitemplate/import.h"
#include "documents/aitemplate/sorted_graph.h"

#include <algorithm>

namespace tenon::documents::aitemplate {
namespace {

using Kind = PythonValue::Kind;

std::string shortened_text(const PythonValue& value) {
  std::string text = pretty_print(value, {});
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Parses a default dim name: "input_0_dim_1" -> "input_0" and 1.
struct OwnName {
  std::string tensor;
  std::size_t axis = 0;
};
std::optional<OwnName> parse_own_name(const std::string& name) {
  const std::string_view middle = "_dim_";
  const std::size_t at = name.rfind(middle);
  if (at == std::string::npos || at == 0) return std::nullopt;
  const auto axis = parse_integer(name.substr(at + middle.size()));
  if (!axis || *axis < 0 || std::to_string(*axis) != name.substr(at + middle.size()))
    return std::nullopt;
  return OwnName{name.substr(0, at), static_cast<std::size_t>(*axis)};
}

}  // namespace

DumpChecker::DumpChecker(const Dump& dump, const SourceMap& places)
    : dump_(dump),
      places_(places),
      dims_(dump),
      written_by_(dump.tensors.size()),
      read_by_(dump.tensors.size()),
      written_at_(dump.tensors.size()) {
  for (std::size_t k = 0; k < dump.tensors.size(); ++k) {
    tensors_.emplace(*dump.tensors[k].name, k);
    for (std::size_t axis = 0; axis < dump.tensors[k].shape.size(); ++axis) {
      const DimRow& dim = dump.tensors[k].shape[axis];
      if (!dim.name) continue;
      first_dims_.emplace(*dim.name, &dim);
      first_owners_.emplace(*dim.name, std::make_pair(k, axis));
    }
  }
  for (std::size_t k = 0; k < dump.operators.size(); ++k) {
    const auto note = [&](const std::vector<std::string>& names,
                          std::vector<std::vector<std::size_t>>& lists) {
      for (const std::string& name : names) {
        auto& list = lists[tensors_.at(name)];
        if (list.empty() || list.back() != k) list.push_back(k);
      }
    };
    const OperatorRow& row = dump.operators[k];
    note(row.outputs, written_by_);
    note(row.inputs, read_by_);
    for (std::size_t j = 0; j < row.outputs.size(); ++j) {
      std::vector<std::size_t>& places_of = written_at_[tensors_.at(row.outputs[j])];
      if (places_of.size() < written_by_[tensors_.at(row.outputs[j])].size())
        places_of.push_back(j);
    }
    if (row.original_name) by_original_name_.emplace(*row.original_name, k);
  }
}

Findings DumpChecker::run() {
  find_stale_depths();
  check_presence();
  for (std::size_t k = 0; k < dump_.tensors.size(); ++k) check_tensor(k);
  for (std::size_t k = 0; k < dump_.operators.size(); ++k) check_operator(k);
  check_tenon_shapes();
  check_parts();
  check_order();
  return std::move(findings_);
}

// ---- places ----

// Returns e.g. "line 34, column 3, tensor 'conv2d_0_0', shape/1/values".
std::string DumpChecker::place(const Path& path) const {
  const std::vector<std::string> steps = split(path.text, '/');
  std::string text = places_.place(path.text);
  const auto index = steps.size() > 1 ? parse_integer(steps[1]) : std::nullopt;
  const bool is_tensor = steps.front() == "tensors";
  if (index) {
    const auto k = static_cast<std::size_t>(*index);
    const std::string name = is_tensor ? *dump_.tensors.at(k).name : *dump_.operators.at(k).name;
    text += concat(text.empty() ? "" : ", ", is_tensor ? "tensor '" : "operator '", name, "'");
  }
  std::vector<std::string> rest;
  for (std::size_t k = 2; k < steps.size(); ++k) rest.push_back(steps[k]);
  return rest.empty() ? text : concat(text, ", ", join(rest, "/"));
}

void DumpChecker::compare_lists(std::string_view kind, const Path& path,
                                const std::vector<std::string>& says,
                                const std::vector<std::string>& should_be) {
  compare(kind, path, join(says, ", "), join(should_be, ", "));
}

void DumpChecker::compare_numbers(std::string_view kind, const Path& path,
                                  const std::vector<std::int64_t>& says,
                                  const std::vector<std::int64_t>& should_be) {
  for (std::size_t k = 0; k < std::min(says.size(), should_be.size()); ++k) {
    compare(kind, path / k, says[k], should_be[k]);
  }
  if (says.size() != should_be.size()) compare(kind, path, says.size(), should_be.size());
}

void DumpChecker::compare_values(std::string_view kind, const Path& path, const PythonValue& says,
                                 const PythonValue& should_be) {
  const bool is_leaf = says.items.empty() || should_be.items.empty();
  if (is_leaf || says.kind != should_be.kind || says.items.size() != should_be.items.size()) {
    compare(kind, path, shortened_text(says), shortened_text(should_be));
    return;
  }
  for (std::size_t k = 0; k < says.items.size(); ++k) {
    if (!says.has_keys()) {
      compare_values(kind, path / k, says.items[k], should_be.items[k]);
      continue;
    }
    const PythonValue* other = should_be.find(says.keys[k].text);
    if (other == nullptr) {
      findings_.miss(
          kind, [&] { return place(path); }, says.keys[k].text, "no such attribute");
    } else {
      compare_values(kind, path / says.keys[k].text, says.items[k], *other);
    }
  }
}

void DumpChecker::compare_attribute(std::string_view kind, const OperatorRow& row, const Path& path,
                                    std::string_view name, const PythonValue& should_be) {
  const PythonValue* says = row.find(name);
  if (says != nullptr) compare_values(kind, path / name, *says, should_be);
}

std::string DumpChecker::dim_text(const DimRow& row) const {
  try {
    return to_string(dims_.dim(row));
  } catch (const Error&) {
    return concat("from ", row.least(), " to ", row.greatest());
  }
}

// ---- tensors ----

std::vector<std::string> DumpChecker::writers(std::size_t tensor) const {
  std::vector<std::string> names;
  for (const std::size_t k : written_by_[tensor]) names.push_back(*dump_.operators[k].name);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> DumpChecker::readers(std::size_t tensor) const {
  std::vector<std::string> names;
  for (const std::size_t k : read_by_[tensor]) names.push_back(*dump_.operators[k].name);
  std::sort(names.begin(), names.end());
  return names;
}

// The accessor replaces a view operator, which counted towards the depth.
bool DumpChecker::is_moved(const std::optional<std::vector<AccessorRow>>& accessors,
                           std::size_t k) {
  return accessors && k < accessors->size() && (*accessors)[k].actual_shapes;
}

// Returns the depth of an output: one more than the depth of the operator, or of the inner operator
// that produces it.
std::int64_t DumpChecker::depth_after(const OperatorRow& row, std::size_t k) const {
  const auto& originals = row.original_outputs;
  const bool has_original = originals && k < originals->size() && (*originals)[k].name;
  const std::string& name = has_original ? *(*originals)[k].name : row.outputs[k];
  std::int64_t depth = row.depth;
  for (const OperatorRow& inner : row.elementwise_ops) {
    const bool is_maker =
        std::find(inner.outputs.begin(), inner.outputs.end(), name) != inner.outputs.end();
    if (is_maker) depth = inner.depth;
  }
  return depth + 1;
}

void DumpChecker::check_tensor(std::size_t index) {
  const TensorRow& row = dump_.tensors[index];
  const Path path = tensor_path(index);
  std::int64_t depth = 0;
  for (std::size_t k = 0; k < written_by_[index].size(); ++k) {
    const OperatorRow& writer = dump_.operators[written_by_[index][k]];
    const std::size_t output = written_at_[index][k];
    depth =
        std::max(depth, depth_after(writer, output) + is_moved(writer.output_accessors, output));
  }
  compare_depth(path / "depth", row.depth, depth);

  const auto sorted = [](std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    return names;
  };
  compare_lists("producers and consumers", path / "src_ops", sorted(row.src_ops), writers(index));
  compare_lists("producers and consumers", path / "dst_ops", sorted(row.dst_ops), readers(index));

  const auto flag = [&](std::string_view name, bool says, bool should_be) {
    compare("flags", path / name, std::string(says ? "True" : "False"),
            std::string(should_be ? "True" : "False"));
  };
  const bool has_writers = !written_by_[index].empty();
  if (row.is_input) flag("is_input", row.is_input, !has_writers);
  const bool has_siblings =
      std::any_of(written_by_[index].begin(), written_by_[index].end(),
                  [&](std::size_t k) { return dump_.operators[k].outputs.size() > 1; });
  if (read_by_[index].empty() && !has_siblings) flag("is_output", row.is_output, true);
  if (std::find(row.absent.begin(), row.absent.end(), "is_param") == row.absent.end()) {
    flag("is_param", row.is_param, !has_writers && !row.is_input);
  }
  flag("nop", row.is_nop, false);
  // Parameters of a module list begin with their index: 0_weight.
  const bool is_numbered = !has_writers && c_safe("_" + *row.name) == "_" + *row.name;
  compare("names", path / "name", *row.name, is_numbered ? *row.name : c_safe(*row.name));
  if (row.original_name) {
    const auto follows = [&](const std::string& from) {
      return *row.name == from || row.name->rfind(from + "_", 0) == 0;
    };
    compare(
        "names", path / "name",
        follows(c_safe(*row.original_name)) || follows(c_safe("_" + *row.original_name).substr(1)),
        true);
  }
  if (!dtype_of(row.dtype))
    findings_.miss(
        "element type", [&] { return place(path / "dtype"); }, row.dtype, "a known type");
  if (row.offset) compare("memory", path / "offset", *row.offset, *row.offset - *row.offset % 64);

  check_dims(row.shape, path / "shape");
  for (std::size_t axis = 0; axis < row.shape.size(); ++axis)
    check_dim_name(row, axis, path / "shape" / axis);
  check_views(index);
}

void DumpChecker::check_dims(const std::vector<DimRow>& dims, const Path& path) {
  for (std::size_t axis = 0; axis < dims.size(); ++axis) check_dim(dims[axis], path / axis);
}

void DumpChecker::check_dim(const DimRow& dim, const Path& path) {
  compare("dims", path / "depth", dim.depth, 0);
  std::vector<std::int64_t> sorted = dim.values;
  std::sort(sorted.begin(), sorted.end());
  compare_numbers("dims", path / "values", dim.values, sorted);
  // All occurrences of a name are one dim.
  const auto first = dim.name ? first_dims_.find(*dim.name) : first_dims_.end();
  if (first != first_dims_.end() && first->second != &dim) {
    compare_numbers("dims of one name", path / "values", dim.values, first->second->values);
    compare_values("dims of one name", path / "symbolic_value",
                   to_python(dim).find("symbolic_value") ? *to_python(dim).find("symbolic_value")
                                                         : PythonValue(),
                   to_python(*first->second).find("symbolic_value")
                       ? *to_python(*first->second).find("symbolic_value")
                       : PythonValue());
  }
  const bool has_symbol =
      std::find(dim.absent.begin(), dim.absent.end(), "symbolic_value") == dim.absent.end();
  if (!has_symbol) return;
  if (const auto* number = std::get_if<std::int64_t>(&dim.symbolic_value)) {
    compare("dims", path / "symbolic_value", *number, dim.least());
    return;
  }
  const std::string& formula = std::get<std::string>(dim.symbolic_value);
  try {
    const Range range = parse_formula(formula, dims_.ranges()).range();
    compare("dims", path / "values" / std::size_t{0}, dim.least(),
            std::max<std::int64_t>(range.lo, 0));
    compare("dims", path / "values" / (dim.values.size() - 1), dim.greatest(),
            std::clamp<std::int64_t>(range.hi, 0, kMaxExtent));
  } catch (const Error& error) {
    findings_.miss(
        "dims", [&] { return place(path / "symbolic_value"); }, formula, error.summary());
  }
}

// A dim has a user-given name, or the name of the first tensor that has it with the axis.
void DumpChecker::check_dim_name(const TensorRow& row, std::size_t axis, const Path& path) {
  const DimRow& dim = row.shape[axis];
  if (!dim.name) return;
  const auto own = parse_own_name(*dim.name);
  if (!own) return;
  const auto [first_tensor, first_axis] = first_owners_.at(*dim.name);
  const auto owner = tensors_.find(own->tensor);
  const bool is_source = written_by_[tensors_.at(*row.name)].empty();
  // The inner tensors of a fused operator own dims but are not listed.
  const bool may_be_gone = owner == tensors_.end() && !is_source;
  if (may_be_gone && is_number(own->tensor.substr(own->tensor.rfind('_') + 1))) return;
  const std::string should_be = concat(*dump_.tensors[first_tensor].name, "_dim_", first_axis);
  compare("names of dims", path / "name", *dim.name, should_be);
}

void DumpChecker::check_views(std::size_t index) {
  const TensorRow& row = dump_.tensors[index];
  const Path path = tensor_path(index);
  if (!row.is_view_of.empty()) {
    check_nested(row.is_view_of[0], path / "is_view_of");
    // Requires equal element counts.
    const auto count = [&](const TensorRow& tensor) {
      try {
        return to_string(product(dims_.dims(tensor.shape)));
      } catch (const Error&) {
        return std::string("unknown");
      }
    };
    compare("views", path / "is_view_of" / "shape", count(row.is_view_of[0]), count(row));
  }
  if (!row.external_tensor.empty()) check_nested(row.external_tensor[0], path / "external_tensor");
}

// A tensor that is printed inside another must equal the listed one.
void DumpChecker::check_nested(const TensorRow& nested, const Path& path) {
  const auto listed = nested.name ? tensors_.find(*nested.name) : tensors_.end();
  if (listed == tensors_.end()) {
    check_dims(nested.shape, path / "shape");
    return;
  }
  TensorRow expected = dump_.tensors[listed->second];
  // Only listed tensors carry Tenon's annotations.
  std::erase_if(expected.further,
                [](const Member& member) { return member.first.starts_with("tenon_"); });
  compare_values("nested tensors", path, to_python(nested), to_python(expected));
}

// Returns the shape in which an operator sees a tensor. An accessor of another rank without a
// layout change belongs to a matrix product, which always has two axes.
const std::vector<DimRow>& DumpChecker::shape_seen(
    const std::optional<std::vector<AccessorRow>>& accessors, std::size_t k,
    const TensorRow& row) const {
  if (!accessors || k >= accessors->size()) return row.shape;
  const AccessorRow& accessor = (*accessors)[k];
  const bool is_flat =
      !accessor.actual_shapes && accessor.original_shapes.size() != row.shape.size();
  return is_flat ? row.shape : accessor.original_shapes;
}

// Fusion passes leave stale depths: some are larger than recomputed ones.
void DumpChecker::find_stale_depths() {
  for (const OperatorRow& row : dump_.operators) {
    const auto composite = row.find(kOwnKey) ? std::nullopt : parse_composite(row.op);
    is_late_ = is_late_ || (composite && !composite->steps.empty());
  }
  std::size_t larger = 0, smaller = 0;
  for (const OperatorRow& row : dump_.operators) {
    std::int64_t depth = 0;
    for (std::size_t k = 0; k < row.inputs.size(); ++k)
      depth = std::max(depth, tensor(row.inputs[k]).depth + is_moved(row.input_accessors, k));
    larger += row.depth > depth;
    smaller += row.depth < depth;
  }
  are_depths_stale_ = is_late_ && larger > 1 && smaller == 0;
}

void DumpChecker::compare_depth(const Path& path, std::int64_t says, std::int64_t should_be) {
  if (are_depths_stale_ && says > should_be) {
    findings_.hold("depth");
  } else {
    compare("depth", path, says, should_be);
  }
}

// A version of AITemplate prints an attribute for all objects of a kind or for none.
void DumpChecker::check_presence() {
  struct Place {
    const std::vector<std::string>* absent;
    Path path;
  };
  std::vector<Place> tensors, dims, accessors;
  const auto add_dims = [&](const std::vector<DimRow>& list, const Path& path) {
    for (std::size_t k = 0; k < list.size(); ++k) dims.push_back({&list[k].absent, path / k});
  };
  for (std::size_t k = 0; k < dump_.tensors.size(); ++k) {
    tensors.push_back({&dump_.tensors[k].absent, tensor_path(k)});
    add_dims(dump_.tensors[k].shape, tensor_path(k) / "shape");
  }
  for (std::size_t k = 0; k < dump_.operators.size(); ++k) {
    const OperatorRow& row = dump_.operators[k];
    for (const auto& [key, list] : {std::pair("input_accessors", &row.input_accessors),
                                    std::pair("output_accessors", &row.output_accessors)}) {
      for (std::size_t j = 0; *list && j < (*list)->size(); ++j)
        accessors.push_back({&(**list)[j].absent, operator_path(k) / key / j});
    }
  }
  for (const std::vector<Place>* kind : {&tensors, &dims, &accessors}) {
    std::map<std::string, std::size_t> counts;
    for (const Place& each : *kind) {
      for (const std::string& name : *each.absent) ++counts[name];
    }
    for (const Place& each : *kind) {
      for (const std::string& name : *each.absent) {
        if (counts[name] == kind->size()) continue;
        findings_.miss(
            "attributes", [&] { return place(each.path); }, concat("no '", name, "'"),
            concat("'", name, "', as the others have"));
      }
    }
    if (!kind->empty()) findings_.hold("attributes");
  }
}

// Returns outputs in the order of the dump, or in the graph order that Tenon annotated.
std::vector<std::size_t> DumpChecker::listed_outputs() const {
  std::vector<std::pair<std::int64_t, std::size_t>> found;
  for (std::size_t k = 0; k < dump_.tensors.size(); ++k) {
    if (!dump_.tensors[k].is_output) continue;
    std::int64_t position = -1;
    for (const auto& [name, value] : dump_.tensors[k].further) {
      if (name == kOutputKey && value.is(PythonValue::Kind::Integer)) position = value.integer;
    }
    found.emplace_back(position, k);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::size_t> outputs;
  for (const auto& [position, k] : found) outputs.push_back(k);
  return outputs;
}

// Returns whether the tensors are listed in topological order.
bool DumpChecker::is_listed_in_order() const {
  for (std::size_t k = 0; k < dump_.tensors.size(); ++k) {
    for (const std::size_t writer : written_by_[k]) {
      for (const std::string& name : dump_.operators[writer].inputs) {
        if (tensors_.at(name) > k) return false;
      }
    }
  }
  return true;
}

// Checks AITemplate's sort order; equal outputs of one operator are compared in listed order.
void DumpChecker::check_order() {
  SortGraph graph;
  graph.tensors.resize(dump_.tensors.size());
  graph.operators.resize(dump_.operators.size());
  for (std::size_t k = 0; k < dump_.operators.size(); ++k) {
    const OperatorRow& row = dump_.operators[k];
    for (const std::string& name : row.inputs)
      graph.operators[k].inputs.push_back(tensors_.at(name));
    for (const std::string& name : row.outputs)
      graph.operators[k].outputs.push_back(tensors_.at(name));
    std::sort(graph.operators[k].outputs.begin(), graph.operators[k].outputs.end());
  }
  for (std::size_t k = 0; k < dump_.tensors.size(); ++k) {
    const TensorRow& row = dump_.tensors[k];
    SortGraph::Tensor& tensor = graph.tensors[k];
    tensor.writers = written_by_[k];
    // In the order of the tensor's readers, which ties depend on.
    std::unordered_map<std::string, std::vector<std::size_t>> by_name;
    for (const std::size_t reader : read_by_[k])
      by_name[*dump_.operators[reader].name].push_back(reader);
    std::vector<std::string> names = row.dst_ops;
    for (const std::size_t reader : read_by_[k]) names.push_back(*dump_.operators[reader].name);
    for (const std::string& name : names) {
      std::vector<std::size_t>& list = by_name[name];
      tensor.readers.insert(tensor.readers.end(), list.begin(), list.end());
      list.clear();
    }
    tensor.depth = row.depth;
    const auto dtype = dtype_of(row.dtype);
    tensor.bytes =
        dtype ? std::max<std::uint64_t>(1, static_cast<std::uint64_t>(info(*dtype).bits) / 8) : 1;
    for (const DimRow& dim : row.shape)
      tensor.bytes = saturating_product(tensor.bytes, static_cast<std::uint64_t>(dim.greatest()));
  }
  graph.outputs = listed_outputs();
  std::vector<std::size_t> order = sorted_tensors(graph);
  // The dump does not record the user's order of outputs: any order that leads to this list is
  // accepted.
  std::vector<std::size_t> outputs = graph.outputs;
  std::sort(outputs.begin(), outputs.end());
  const auto is_listed = [&] { return std::is_sorted(order.begin(), order.end()); };
  for (int tries = 0; tries < 720 && !is_listed(); ++tries) {
    graph.outputs = outputs;
    order = sorted_tensors(graph);
    if (!std::next_permutation(outputs.begin(), outputs.end())) break;
  }
  if (!is_listed() && are_depths_stale_ && is_listed_in_order()) {
    findings_.hold("order of tensors");
    return;  // sorted before the last passes
  }
  if (!is_listed()) {
    graph.outputs = listed_outputs();
    order = sorted_tensors(graph);
  }
  std::vector<bool> is_used(dump_.operators.size(), false);
  std::vector<std::size_t> operators;
  for (std::size_t k = 0; k < dump_.tensors.size(); ++k) {
    const std::string should_be =
        k < order.size() ? *dump_.tensors[order[k]].name : "nothing: no output needs more";
    compare("order of tensors", tensor_path(k) / "name", *dump_.tensors[k].name, should_be);
    for (const std::size_t writer : written_by_[k]) {
      if (!is_used[writer]) operators.push_back(writer);
      is_used[writer] = true;
    }
  }
  for (std::size_t k = 0; k < operators.size(); ++k) {
    compare("order of operators", operator_path(k) / "name", *dump_.operators[k].name,
            *dump_.operators[operators[k]].name);
  }
}

Findings check_dump(const Dump& dump, const SourceMap& places) {
  return DumpChecker(dump, places).run();
}

}  // namespace tenon::documents::aitemplate
