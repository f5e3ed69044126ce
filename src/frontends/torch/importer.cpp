#include "frontends/torch/importer.h"

#include "base/error.h"
#include "base/text.h"
#include "frontends/mapped_file.h"
#include "frontends/torch/argument.h"
#include "frontends/torch/import.h"
#include "frontends/torch/output_names.h"
#include "frontends/torch/sym_expr.h"
#include "ir/graph.h"
#include "ops/definition/var_ops.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

namespace tenon::frontends::torch {
namespace {

constexpr std::string_view kAten = "torch.ops.";
constexpr std::size_t kMaxRank = 64;

// Checks of the program that extents and types of the graph already state.
bool is_check(std::string_view op) {
  static const std::unordered_set<std::string_view> names = {
      "_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range",
      "sym_constrain_range_for_size"};
  return names.contains(op);
}

// Splits "torch.ops.aten.add.Tensor" into "add" and "Tensor"; operators of other libraries keep
// theirs: "quantized_decomposed.quantize_per_tensor".
std::pair<std::string_view, std::string_view> op_of(std::string_view target) {
  if (target.starts_with(kAten)) target.remove_prefix(kAten.size());
  std::string_view overload;
  if (const std::size_t dot = target.rfind('.'); std::ranges::count(target, '.') >= 2) {
    overload = target.substr(dot + 1);
    target = target.substr(0, dot);
  }
  if (target.starts_with("aten.")) target.remove_prefix(5);
  return {target, overload};
}

// Name of the functional form of an in-place operator; nullopt for other operators.
std::optional<std::string_view> functional_form(std::string_view op) {
  if (op == "__iand__") return "bitwise_and";
  if (op == "__ior__") return "bitwise_or";
  if (!op.ends_with('_') || op.ends_with("__") || op == "detach_") return std::nullopt;
  return op.substr(0, op.size() - 1);
}

// Path of the module that a node comes from, from "L__self__norm,norm,torch.nn...;...".
std::string module_of(const JsonReader& node) {
  const auto metadata = node.find("metadata");
  const auto stack = metadata ? metadata->find("nn_module_stack") : std::nullopt;
  if (!stack || !stack->is_text()) return "";
  std::string_view last = stack->text();
  if (const std::size_t separator = last.rfind(';'); separator != std::string_view::npos)
    last = last.substr(separator + 1);
  const std::size_t begin = last.find(',');
  if (begin == std::string_view::npos) return "";
  last = last.substr(begin + 1);
  last = last.substr(0, last.find(','));
  std::string path(last == "_empty_nn_module_stack_from_metadata_hook" ? "" : last);
  std::ranges::replace(path, '.', '/');
  return path;
}

}  // namespace

TorchImporter::TorchImporter(Archive& archive, std::vector<std::string>* warnings)
    : archive_(archive), warnings_(warnings) {}

Graph TorchImporter::run() try {
  const JsonReader program = archive_.program();
  const std::int64_t major = program.member("schema_version").member("major").integer();
  constexpr std::int64_t kOldest = 5, kNewest = 8;
  if (major < kOldest || major > kNewest) {
    throw Error(concat("version ", major, " of PyTorch's export schema is not known"),
                ErrorKind::Unsupported)
        .expected(kOldest, " to ", kNewest);
  }
  read_ranges();
  Scope scope{program.member("graph_module").member("graph")};
  scope_ = &scope;
  read_types(scope);
  if (const auto version = program.find("torch_version"); version && version->is_text())
    builder_.graph().metadata["producer_version"] = version->text();
  builder_.graph().metadata["producer_name"] = "pytorch";
  add_inputs();
  import_nodes();
  if (unsupported_.is_empty()) add_outputs();
  unsupported_.raise("import", archive_.source());
  const auto guards = program.find("guards_code");
  if (warnings_ != nullptr && guards && !guards->elements().empty()) {
    warnings_->push_back(concat("guards of the exported program are not checked: ",
                                guards->elements().front().text()));
  }
  Graph graph = builder_.take();
  graph.erase_dead();
  return graph;
} catch (const NotSupported& refusal) {
  throw Error(concat("cannot import the model: ", refusal.reason), ErrorKind::Unsupported)
      .at(archive_.source());
} catch (Error& error) {
  if (!error.place().starts_with(archive_.source()))
    error.at(error.has_place() ? concat(archive_.source(), ", ", error.place())
                               : archive_.source());
  throw;
}

void TorchImporter::read_ranges() {
  for (const auto& [name, range] : archive_.program().member("range_constraints").members()) {
    Range bounds{0, kMaxExtent};
    const auto bound = [&](std::string_view which, std::int64_t& value) {
      const auto given = range.find(which);
      if (given && given->is_integer())
        value = std::clamp<std::int64_t>(given->integer(), 0, kMaxExtent);
    };
    bound("min_val", bounds.lo);
    bound("max_val", bounds.hi);
    ranges_.emplace(std::string(name), bounds);
  }
}

Dim TorchImporter::dim_of(const JsonReader& argument) const {
  const auto [kind, value] = tagged(argument);
  if (kind == "as_int") return value.integer();
  if (kind == "as_expr") return parse_sym_expr(value.member("expr_str").text(), ranges_);
  if (kind != "as_name") throw argument.error("a number has no value");
  const auto found = scope_->numbers.find(value.text());
  if (found == scope_->numbers.end()) throw NotSupported{"it depends on computed numbers"};
  return found->second;
}

TensorType TorchImporter::type_of(const JsonReader& meta) const {
  const std::int64_t number = meta.member("dtype").integer();
  TensorType type;
  type.dtype = dtype_of_scalar_type(number);
  for (const JsonReader& size : meta.member("sizes").elements()) type.dims.push_back(dim_of(size));
  if (is_complex_type(number)) type.dims.push_back(2);
  if (type.dims.size() > kMaxRank) throw meta.error("a tensor has too many axes");
  return type;
}

void TorchImporter::read_types(Scope& scope) {
  for (const auto& [name, value] : scope.graph.member("sym_int_values").members()) {
    const auto [kind, expression] = tagged(value);
    try {
      scope.numbers.emplace(std::string(name), dim_of(value));
    } catch (const Error& error) {  // A number that no extent needs.
      if (error.kind() != ErrorKind::Unsupported) throw;
    }
  }
  for (const auto& [name, meta] : scope.graph.member("tensor_values").members()) {
    scope.types.emplace(std::string(name), type_of(meta));
    scope.complex.emplace(std::string(name), is_complex_type(meta.member("dtype").integer()));
  }
}

void TorchImporter::add_inputs() {
  const JsonReader signature = archive_.program().member("graph_module").member("signature");
  for (const JsonReader& spec : signature.member("input_specs").elements()) {
    const auto [kind, given] = tagged(spec);
    Slot slot;
    std::string name;
    if (kind == "user_input") {
      const auto [arg_kind, arg] = tagged(given.member("arg"));
      if (arg_kind == "as_sym_int") throw arg.error("an input is a number; give it as a tensor");
      if (arg_kind != "as_tensor") continue;  // A constant argument.
      name = arg.member("name").text();
      slot.value = builder_.input(name, Type(type_named(name)));
      slot.outer = concat("the input '", name, "'");
    } else if (kind == "parameter" || kind == "buffer" || kind == "tensor_constant") {
      const std::string& stored = given.member(concat(kind, "_name")).text();
      name = given.member("arg").member("name").text();
      slot.value = builder_.constant(archive_.tensor(stored), builder_.graph().free_name(stored));
      slot.outer = concat("the ", kind, " '", stored, "'");
      if (builder_.type(slot.value).tensor() != type_named(name))
        throw given.error("a stored tensor has another type than the program states");
    } else if (kind == "constant_input") {
      continue;
    } else {
      unsupported_.add(concat("an input of the kind '", kind, "'"), "", "");
      continue;
    }
    scope_->slots.emplace(name, std::move(slot));
  }
}

void TorchImporter::add_outputs() {
  const JsonReader module = archive_.program().member("graph_module");
  const auto specs = module.member("signature").member("output_specs").elements();
  std::vector<Var> values;
  std::vector<std::string> names;
  for (const JsonReader& spec : specs) {
    const auto [kind, given] = tagged(spec);
    if (kind != "user_output" && kind != "loss_output") {
      unsupported_.add(concat("an output of the kind '", kind, "'"),
                       "states that a run updates are not kept", "");
      continue;
    }
    const auto [arg_kind, arg] =
        kind == "loss_output"
            ? std::pair<std::string_view, JsonReader>{"as_tensor", given.member("arg")}
            : tagged(given.member("arg"));
    if (arg_kind != "as_tensor") continue;  // A constant.
    names.push_back(arg.member("name").text());
    values.push_back(read(names.back()));
  }
  const std::vector<std::string> stated = output_names(module, specs.size());
  Graph& graph = builder_.graph();
  std::unordered_set<std::uint32_t> taken;
  for (std::size_t k = 0; k < values.size(); ++k) {
    const std::string& name = stated.size() == values.size() ? stated[k] : names[k];
    const ValueId id(values[k].id());
    const bool is_own = graph.value(id).producer && graph.constant_of(id) == nullptr &&
                        taken.insert(values[k].id()).second;
    const Var output = is_own ? values[k] : builder_.call("identity", {values[k]});
    builder_.output(output,
                    graph.value(ValueId(output.id())).name == name ? name : graph.free_name(name));
  }
}

void TorchImporter::import_nodes() {
  for (const JsonReader& node : scope_->graph.member("nodes").elements()) import_node(node);
}

bool TorchImporter::is_about_numbers(const JsonReader& node) const {
  const auto outputs = node.member("outputs").elements();
  return !outputs.empty() && std::ranges::all_of(outputs, [](const JsonReader& output) {
    return tagged(output).first.starts_with("as_sym_");
  });
}

bool TorchImporter::reads_doubtful(const JsonReader& node) const {
  const auto is_doubtful = [&](const JsonReader& value) {
    const auto name = value.find("name");
    return name && name->is_text() && scope_->doubtful.contains(name->text());
  };
  for (const JsonReader& input : node.member("inputs").elements()) {
    const auto [kind, value] = tagged(input.member("arg"));
    if (kind == "as_tensor" && is_doubtful(value)) return true;
    if (kind != "as_tensors" && kind != "as_optional_tensors") continue;
    for (const JsonReader& each : value.elements()) {
      if (kind == "as_tensors" && is_doubtful(each)) return true;
      if (kind == "as_optional_tensors" && tagged(each).first == "as_tensor" &&
          is_doubtful(tagged(each).second))
        return true;
    }
  }
  return false;
}

void TorchImporter::refuse(const JsonReader& node, std::string_view target,
                           const std::string& reason) {
  unsupported_.add(std::string(target), reason,
                   node.find("name") ? node.member("name").text() : "");
}

void TorchImporter::import_node(const JsonReader& node) {
  const std::string& target = node.member("target").text();
  const auto [op, overload] = op_of(target);
  if (is_check(op)) return;
  const auto mark = [&] {
    for (const JsonReader& output : node.member("outputs").elements()) {
      const auto [kind, value] = tagged(output);
      if (kind == "as_tensor") scope_->doubtful.emplace(value.member("name").text(), true);
      if (kind != "as_tensors") continue;
      for (const JsonReader& each : value.elements())
        scope_->doubtful.emplace(each.member("name").text(), true);
    }
  };
  if (reads_doubtful(node)) {
    if (target.starts_with(kAten) && !is_about_numbers(node) &&
        find_handler(functional_form(op).value_or(op)) == nullptr)
      refuse(node, op, "");
    return mark();
  }
  const bool is_named = node.find("name") && node.member("name").is_text();
  const std::string name = is_named ? node.member("name").text() : std::string(op);
  const std::string module = module_of(node);
  builder_.set_node_name(module.empty() ? name : concat(module, "/", name));
  try {
    if (is_about_numbers(node)) {
      for (const JsonReader& output : node.member("outputs").elements()) {
        const auto [kind, value] = tagged(output);
        if (kind == "as_sym_int" && tagged(value).first == "as_name" &&
            !scope_->numbers.contains(tagged(value).second.text()))
          throw NotSupported{"it computes a number from data"};
      }
    } else if (target.starts_with("torch.ops.higher_order.wrap_with_")) {
      call_subgraph(node);
    } else {
      run_handler(node, target);
    }
  } catch (const NotSupported& refusal) {
    refuse(node, concat(op, overload.empty() || overload == "default" ? "" : concat(".", overload)),
           refusal.reason);
    mark();
  } catch (Error& error) {
    if (error.kind() == ErrorKind::Unsupported) {
      refuse(node, op, error.summary());
      mark();
    } else {
      throw error.at("node '", name, "' (", op, ")",
                     error.has_place() ? concat(", ", error.place()) : "");
    }
  }
  builder_.set_node_name("");
}

void TorchImporter::run_handler(const JsonReader& node, std::string_view target) {
  auto [op, overload] = op_of(target);
  const std::optional<std::string_view> functional = functional_form(op);
  const Handler* handler = find_handler(functional.value_or(op));
  if (handler == nullptr) throw NotSupported{""};
  NodeImport import(*this, node, functional.value_or(op), overload);
  try {
    handler->import(import);
  } catch (const std::out_of_range&) {
    throw Error("an operand has too few axes, or the node too few results");
  }
  if (functional) {
    const JsonReader self = node.member("inputs").elements().front();
    const auto [kind, value] = tagged(self.member("arg"));
    if (kind != "as_tensor") throw NotSupported{"it writes to several tensors"};
    const auto [out_kind, result] = tagged(node.member("outputs").elements().front());
    const std::string& name = value.member("name").text();
    const std::string& made = result.member("name").text();
    write(name, cast_to(slot_named(made).value, type_named(name).dtype), import);
    // The result is the written tensor itself.
    Slot& slot = slot_named(made);
    slot.base = name;
    slot.view_node.reset();
    slot.base_version = slot_named(name).version;
  } else {
    note_view(node, op);
  }
}

// The region sets a mode that inference does not know, such as "without gradients".
void TorchImporter::call_subgraph(const JsonReader& node) {
  std::optional<JsonReader> graph;
  std::vector<JsonReader> given;
  for (const JsonReader& input : node.member("inputs").elements()) {
    const auto [kind, value] = tagged(input.member("arg"));
    if (kind == "as_graph") {
      graph = value.member("graph");
    } else if (graph) {
      given.push_back(input.member("arg"));
    }
  }
  if (!graph) throw NotSupported{"it has no graph"};
  Scope inner{*graph};
  inner.numbers = scope_->numbers;
  Scope* const outer = scope_;
  const auto inputs = graph->member("inputs").elements();
  if (inputs.size() != given.size()) throw node.error("a graph has another number of inputs");
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const auto [kind, value] = tagged(given[k]);
    const auto [inner_kind, parameter] = tagged(inputs[k]);
    if (kind != "as_tensor" || inner_kind != "as_tensor") continue;
    Slot slot;
    slot.value = read(value.member("name").text());
    slot.outer = "an operand of a region";
    inner.slots.emplace(parameter.member("name").text(), std::move(slot));
  }
  std::vector<std::string> made;
  for (const JsonReader& output : node.member("outputs").elements()) {
    const auto [kind, value] = tagged(output);
    if (kind == "as_tensor") made.push_back(value.member("name").text());
    if (kind != "as_tensors") continue;
    for (const JsonReader& each : value.elements()) made.push_back(each.member("name").text());
  }
  scope_ = &inner;
  std::vector<Var> results;
  try {
    read_types(inner);
    import_nodes();
    for (const JsonReader& output : graph->member("outputs").elements()) {
      const auto [kind, value] = tagged(output);
      const std::string& name = value.member("name").text();
      if (inner.doubtful.contains(name)) throw NotSupported{"its region is not supported"};
      results.push_back(read(name));
    }
  } catch (...) {
    scope_ = outer;
    throw;
  }
  scope_ = outer;
  if (results.size() != made.size()) throw node.error("a graph has another number of outputs");
  for (std::size_t k = 0; k < made.size(); ++k) define(made[k], results[k]);
}

Graph import_torch(const std::string& path, std::vector<std::string>* warnings) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return import_torch(file->bytes(), file, path, warnings);
}

Graph import_torch(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                   const std::string& source, std::vector<std::string>* warnings) {
  Archive archive(bytes, std::move(owner), source);
  return TorchImporter(archive, warnings).run();
}

bool is_archive(std::string_view head) { return head.starts_with("PK\x03\x04"); }

}  // namespace tenon::frontends::torch
