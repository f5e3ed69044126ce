#include "documents/aitemplate/describe.h"

#include "base/error.h"
#include "base/text.h"
#include "documents/aitemplate/import.h"
#include "documents/aitemplate/sorted_graph.h"
#include "documents/aitemplate/vocabulary.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace tenon::documents::aitemplate {
namespace {

using Kind = PythonValue::Kind;

constexpr std::size_t kMostRows = 24;  // per table, to keep the page readable

// Returns e.g. "batch_size (1 to 64)", "28".
std::string extent_text(const DimRow& dim) {
  if (dim.is_static()) return std::to_string(dim.least());
  const auto* formula = std::get_if<std::string>(&dim.symbolic_value);
  return formula != nullptr ? *formula : dim.name.value_or("?");
}

std::string shape_text(const TensorRow& row) {
  std::vector<std::string> dims;
  for (const DimRow& dim : row.shape) dims.push_back(extent_text(dim));
  return concat(row.dtype, "[", join(dims, ", "), "]");
}

std::uint64_t largest_bytes(const TensorRow& row) {
  const auto dtype = dtype_of(row.dtype);
  std::uint64_t bytes =
      dtype ? std::max<std::uint64_t>(1, static_cast<std::uint64_t>(info(*dtype).bits) / 8) : 1;
  for (const DimRow& dim : row.shape)
    bytes = saturating_product(bytes, static_cast<std::uint64_t>(dim.greatest()));
  return bytes;
}

std::string role_of(const TensorRow& row) {
  if (row.is_input) return row.is_output ? "input, output" : "input";
  if (row.src_ops.empty()) return "parameter";
  return row.is_output ? "output" : "inside";
}

// Returns the attributes that define the computation, without execution details.
std::string settings_of(const OperatorRow& row) {
  std::vector<std::string> parts;
  for (const std::string_view name :
       {"stride", "pad", "dilate", "group", "kernel_size", "concat_dim", "split_sizes", "dims",
        "start_indices", "end_indices", "dim", "eps", "num_groups", "reduction_axes", "keepdim"}) {
    const PythonValue* value = row.find(name);
    const bool is_usual =
        value != nullptr && value->is(Kind::Integer) &&
        ((name == "dilate" && value->integer == 1) || (name == "group" && value->integer == 1));
    if (value != nullptr && !is_usual) parts.push_back(concat(name, " ", pretty_print(*value, {})));
  }
  if (const PythonValue* record = row.find(kOwnKey)) parts.push_back(record->text);
  if (row.find("tenon_layout") != nullptr)
    parts.emplace_back("a change of layout by Tenon's writer");
  std::string text = join(parts, ", ");
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

std::string kernel_of(const OperatorRow& row) {
  if (!row.exec_path || row.exec_path->entries.empty())
    return row.has_profiler.value_or(false) ? "not chosen yet" : "generated";
  const std::string first = algorithm_of(row.exec_path->entries.front()).value_or("?");
  const std::size_t more = row.exec_path->entries.size() - 1;
  if (first.empty()) {
    if (!row.has_profiler.value_or(false)) return "generated";
    return concat("not chosen yet, for ", more + 1, more == 0 ? " case" : " cases");
  }
  return more == 0 ? first : concat(first, " and ", more, " more");
}

std::string shorten(const std::vector<std::string>& names) {
  if (names.size() <= 3) return join(names, ", ");
  return concat(names[0], ", ", names[1], " and ", names.size() - 2, " more");
}

void add_rows(Page::Section& section, std::vector<std::vector<Page::Cell>> rows) {
  const std::size_t count = rows.size();
  if (count > kMostRows) {
    rows.resize(kMostRows);
    section.text +=
        concat(section.text.empty() ? "" : " ", "The first ", kMostRows, " of ", count, ".");
  }
  section.rows = std::move(rows);
}

Page::Section what_it_is(const Dump& dump) {
  std::uint64_t parameters = 0, inside = 0;
  std::size_t inputs = 0, outputs = 0, weights = 0, planned = 0;
  std::map<std::string, std::size_t> kinds;
  for (const TensorRow& row : dump.tensors) {
    inputs += row.is_input;
    outputs += row.is_output;
    const bool is_weight = row.src_ops.empty() && !row.is_input;
    weights += is_weight;
    if (is_weight) parameters += largest_bytes(row);
    if (!row.src_ops.empty()) inside += largest_bytes(row);
    planned += row.offset.has_value();
  }
  std::size_t profiled = 0, to_profile = 0;
  for (const OperatorRow& row : dump.operators) {
    ++kinds[row.op];
    to_profile += row.has_profiler.value_or(false);
    profiled +=
        row.exec_path && std::any_of(row.exec_path->entries.begin(), row.exec_path->entries.end(),
                                     [](const ExecEntry& entry) {
                                       return !algorithm_of(entry).value_or("").empty();
                                     });
  }
  std::vector<std::string> counts;
  for (const auto& [kind, count] : kinds) counts.push_back(concat(count, " ", kind));
  Page::Section section{"What this is", "", {}, {}};
  section.text = concat(
      "AITemplate compiles a network ahead of time for GPUs. After each of its passes it can dump "
      "the graph: first every "
      "tensor, sorted so that what is computed follows its operands, then every "
      "operator, with all that "
      "the compiler knows of each. This dump has ",
      dump.tensors.size(), " tensors (", inputs, " inputs, ", weights, " parameters of ",
      format_bytes(parameters), ", ", outputs, " outputs; results take ", format_bytes(inside),
      " at most) and ", dump.operators.size(), " operators: ", join(counts, ", "),
      ". Kernels are chosen for ", profiled, " of the ", to_profile,
      " operators that are timed; memory is ", planned == 0 ? "not planned yet." : "planned.");
  return section;
}

Page::Section tensor_table(const Dump& dump) {
  Page::Section section{
      "Tensors", "", {"tensor", "is", "type", ">bytes", ">depth", "made by", "read by"}, {}};
  std::vector<std::vector<Page::Cell>> rows;
  for (const TensorRow& row : dump.tensors) {
    rows.push_back(
        {row.name.value_or(""), role_of(row), shape_text(row),
         Page::Cell(format_bytes(largest_bytes(row)), static_cast<double>(largest_bytes(row))),
         std::to_string(row.depth), shorten(row.src_ops), shorten(row.dst_ops)});
  }
  add_rows(section, std::move(rows));
  return section;
}

Page::Section operator_table(const Dump& dump) {
  Page::Section section{
      "Operators", "", {"operator", "kind", "reads", "gives", "settings", "kernel"}, {}};
  std::vector<std::vector<Page::Cell>> rows;
  for (const OperatorRow& row : dump.operators) {
    rows.push_back({row.name.value_or(""), row.op, shorten(row.inputs), shorten(row.outputs),
                    settings_of(row), kernel_of(row)});
  }
  add_rows(section, std::move(rows));
  return section;
}

// Lists dims that are dynamic, shared by several tensors, or named by the user.
Page::Section dim_table(const Dump& dump) {
  Page::Section section{
      "Dims that tensors share or that vary", "", {"dim", "symbol", "values", "stands in"}, {}};
  std::vector<std::string> order;
  std::unordered_map<std::string, std::pair<const DimRow*, std::vector<std::string>>> dims;
  for (const TensorRow& row : dump.tensors) {
    for (std::size_t axis = 0; axis < row.shape.size(); ++axis) {
      const DimRow& dim = row.shape[axis];
      if (!dim.name) continue;
      auto& [first, places] = dims[*dim.name];
      if (places.empty()) order.push_back(*dim.name);
      if (first == nullptr) first = &dim;
      places.push_back(concat(row.name.value_or(""), "[", axis, "]"));
    }
  }
  std::vector<std::vector<Page::Cell>> rows;
  for (const std::string& name : order) {
    const auto& [first, places] = dims.at(name);
    if (first->is_static() && places.size() < 2) continue;
    std::string values = std::to_string(first->least());
    if (!first->is_static()) {
      values += concat(" to ", first->greatest());
      if (first->values.size() > 2)
        values += concat(", profiled at ", first->values.size(), " values");
    }
    const auto* formula = std::get_if<std::string>(&first->symbolic_value);
    rows.push_back({name, formula != nullptr ? *formula : "", values, shorten(places)});
  }
  add_rows(section, std::move(rows));
  return section;
}

std::string function_text(const OperatorRow& inner) {
  std::vector<std::string> args;
  for (const auto& arg : inner.args.value_or(std::vector<std::optional<std::string>>()))
    args.push_back(arg.value_or("a number"));
  return concat(inner.func ? inner.func->name : inner.op, "(", join(args, ", "), ")");
}

Page::Section group_table(const Dump& dump) {
  Page::Section section{"Fused groups", "", {"group", "step", "computes", "gives"}, {}};
  std::vector<std::vector<Page::Cell>> rows;
  std::size_t strided = 0;
  for (const OperatorRow& row : dump.operators) {
    for (const auto* accessors : {&row.input_accessors, &row.output_accessors}) {
      if (!*accessors) continue;
      strided += static_cast<std::size_t>(
          std::count_if((*accessors)->begin(), (*accessors)->end(),
                        [](const AccessorRow& each) { return each.stride_dim.has_value(); }));
    }
    for (std::size_t k = 0; k < row.elementwise_ops.size(); ++k) {
      const OperatorRow& inner = row.elementwise_ops[k];
      rows.push_back({k == 0 ? row.name.value_or("") : "", inner.name.value_or(""),
                      function_text(inner), shorten(inner.outputs)});
    }
  }
  section.text =
      "Elementwise operators that run as one kernel: each element is read once, goes through the "
      "steps, and is stored once.";
  if (strided > 0) {
    section.text +=
        concat(" ", strided, strided == 1 ? " operand or result lies" : " operands or results lie",
               " inside a larger tensor, where an accessor says: a concatenation or split that "
               "needs no copy.");
  }
  add_rows(section, std::move(rows));
  return section;
}

// Reports whether an addition to a convolution's result could have been its bias.
Page::Section bias_table(const Dump& dump) {
  std::unordered_map<std::string, const OperatorRow*> convolutions;
  std::unordered_map<std::string, const TensorRow*> tensors;
  for (const TensorRow& row : dump.tensors) tensors.emplace(row.name.value_or(""), &row);
  for (const OperatorRow& row : dump.operators) {
    const auto composite = row.find(kOwnKey) ? std::nullopt : parse_composite(row.op);
    if (composite && composite->is_convolution() && !row.outputs.empty())
      convolutions.emplace(row.outputs[0], &row);
  }
  Page::Section section{
      "Sums after convolutions", "", {"sum", "convolution", "other operand", "so it"}, {}};
  std::vector<std::vector<Page::Cell>> rows;
  for (const OperatorRow& row : dump.operators) {
    for (const OperatorRow& inner : row.elementwise_ops) {
      if (!inner.func || inner.func->name != "ADD" || inner.inputs.size() != 2) continue;
      for (std::size_t k = 0; k < 2; ++k) {
        const auto convolution = convolutions.find(inner.inputs[k]);
        const auto other = tensors.find(inner.inputs[1 - k]);
        if (convolution == convolutions.end() || other == tensors.end()) continue;
        const bool is_row = other->second->shape.size() == 1;
        rows.push_back({inner.name.value_or(""), convolution->second->name.value_or(""),
                        concat(inner.inputs[1 - k], ": ", shape_text(*other->second)),
                        is_row ? "may become its bias"
                               : concat("stays: ", other->second->shape.size(), " axes, not one")});
        break;
      }
    }
  }
  section.text =
      "AITemplate makes conv2d and a sum one conv2d_bias only where the other operand is a single "
      "row, one number for each "
      "channel: that is all a kernel's epilogue can add. A tensor of full rank stays a "
      "fused_elementwise of its own.";
  add_rows(section, std::move(rows));
  return section;
}

Page::Section legend() {
  Page::Section section{"How to read the file", "", {"word", "means"}, {}};
  section.rows = {
      {"depth", "how many operators lie between a tensor and the inputs, at most"},
      {"dims",
       "one value is fixed; several are a range, and those between its ends are only for "
       "profiling; one name is one dim"},
      {"<tensor>_dim_<i>", "a dim that nobody named, called after the first tensor that has it"},
      {"src_ops, dst_ops", "the operators that write and read a tensor"},
      {"exec_path",
       "a condition on the extents at run time, and the kernel for it: '' before kernels are "
       "timed"},
      {"epilogue_alignment",
       "how many channels one access stores: the most that divide them, up to 16 bytes"},
      {"accessor",
       "how an operator finds a tensor inside a larger one: offset, and row lengths from the "
       "strided axis on"},
      {"_dim_mapping", "which dims of the tensor lie in which dims of the storage"},
      {"original_*", "operands and results before copies were folded into accessors"},
      {"workspace, split_k",
       "bytes a kernel needs besides its tensors; into how many parts it cuts its sums"},
  };
  return section;
}

}  // namespace

Page describe_dump(const Dump& dump) {
  Page page;
  page.title = "AITemplate: a sorted graph";
  page.sections.push_back(what_it_is(dump));
  for (auto make : {tensor_table, operator_table, dim_table, group_table, bias_table}) {
    Page::Section section = make(dump);
    if (!section.rows.empty()) page.sections.push_back(std::move(section));
  }
  page.sections.push_back(legend());
  return page;
}

}  // namespace tenon::documents::aitemplate
