#include "frontends/onnx/importer.h"

#include "base/error.h"
#include "base/text.h"
#include "frontends/onnx/attributes.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/import_custom.h"
#include "frontends/onnx/schema/onnx.pb.h"
#include "frontends/onnx/sort_nodes.h"
#include "frontends/onnx/tensor_proto.h"
#include "frontends/onnx/versions.h"
#include "ir/node_rules.h"
#include "ops/definition/plugins.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace tenon::frontends::onnx {
namespace {

using onnx_schema::GraphProto;
using onnx_schema::NodeProto;
using onnx_schema::ValueInfoProto;

// Limits the nodes from function calls, which may expand a small file exponentially.
constexpr std::size_t kMaxExpandedNodes = 300'000;

constexpr std::size_t kMaxErrors = 100;

OpsetVersions opset_versions(
    const google::protobuf::RepeatedPtrField<onnx_schema::OperatorSetIdProto>& imports) {
  OpsetVersions versions;
  for (const auto& import : imports) {
    const std::string domain = plain_domain(import.domain());
    const int newest = newest_opset(domain);
    if (import.version() < 1 || import.version() > newest) {
      throw Error(concat("opset version ", import.version(), " is not known"))
          .expected("1 to ", newest, domain.empty() ? "" : concat(" of the domain '", domain, "'"));
    }
    versions[domain] = static_cast<int>(import.version());
  }
  return versions;
}

std::string op_text(const NodeProto& node) {
  const std::string domain = plain_domain(node.domain());
  return domain.empty() ? node.op_type() : concat(domain, ":", node.op_type());
}

std::string name_of(const NodeProto& node) {
  if (!node.name().empty()) return node.name();
  for (const std::string& output : node.output()) {
    if (!output.empty()) return output;
  }
  return "";
}

}  // namespace

OnnxImporter::OnnxImporter(ModelFile file, std::string source, ExternalFiles files,
                           std::vector<std::string>* warnings)
    : file_(std::move(file)),
      model_(file_.message()),
      source_(std::move(source)),
      files_(std::move(files)),
      warnings_(warnings) {
  max_nodes_ = kMaxExpandedNodes + static_cast<std::size_t>(model_->graph().node_size());
}

Graph OnnxImporter::run() try {
  read_opsets();
  read_functions();
  sort();
  GraphProto& main = *model_->mutable_graph();
  Builder builder(main.name());
  read_metadata(builder.graph());
  Scope scope{.builder = &builder, .opsets = &opsets_, .place = source_};
  const ScopeGuard guard(*this, scope);
  if (main.output().empty()) throw Error("the model has no outputs").at(source_);
  declare_types(main);
  import_inputs(main, {});
  import_main_constants(main);
  import_sparse_constants(main);
  try {
    for (const NodeProto& node : main.node()) import_node(node);
    import_outputs(main);
  } catch (const Abandoned&) {
    // The error is recorded.
  }
  raise_problems();
  return builder.take();
} catch (Error& error) {
  if (!error.place().starts_with(source_)) {
    error.at(error.has_place() ? concat(source_, ", ", error.place()) : source_);
  }
  throw;
}

void OnnxImporter::warn(std::string text) {
  if (warnings_) warnings_->push_back(std::move(text));
}

void OnnxImporter::sort() {
  for (std::string& text : sort_nodes(*model_)) warn(std::move(text));
}

void OnnxImporter::read_opsets() {
  // Files of the first versions may omit it; a stated version must exist.
  if (model_->has_ir_version() && model_->ir_version() < 1) {
    throw Error(concat("IR version ", model_->ir_version(), " does not exist"))
        .expected("1 or more");
  }
  opsets_ = opset_versions(model_->opset_import());
  // The first IR versions have a single opset and do not state it.
  if (model_->ir_version() < 3) opsets_.try_emplace("", 1);
}

void OnnxImporter::read_functions() {
  for (const onnx_schema::FunctionProto& proto : model_->functions()) {
    Function function{&proto, opset_versions(proto.opset_import())};
    function.opsets.insert(opsets_.begin(), opsets_.end());
    const FunctionKey key{plain_domain(proto.domain()), proto.name(), proto.overload()};
    if (!functions_.emplace(key, std::move(function)).second) {
      throw Error(concat("two functions are called '", proto.name(), "'"))
          .got("domain '", proto.domain(), "', overload '", proto.overload(), "'");
    }
    max_nodes_ += static_cast<std::size_t>(proto.node_size());
  }
}

void OnnxImporter::read_metadata(Graph& graph) const {
  for (const auto& [domain, version] : opsets_) {
    std::string& text = graph.metadata["opset"];
    text += concat(text.empty() ? "" : ", ", domain.empty() ? "ai.onnx" : domain, " ", version);
  }
  const auto keep = [&](const std::string& key, const std::string& value) {
    if (!key.empty() && !value.empty()) graph.metadata.emplace(key, value);
  };
  keep("producer_name", model_->producer_name());
  keep("producer_version", model_->producer_version());
  keep("domain", model_->domain());
  if (model_->model_version() != 0) keep("model_version", std::to_string(model_->model_version()));
  for (const auto& entry : model_->metadata_props()) keep(entry.key(), entry.value());
}

void OnnxImporter::declare_types(const GraphProto& graph) {
  for (const ValueInfoProto& value : graph.value_info()) {
    scope_->declared_types.emplace(value.name(), &value.type());
  }
  for (const ValueInfoProto& value : graph.output()) {
    scope_->declared_types.emplace(value.name(), &value.type());
  }
}

template <class Read>
void OnnxImporter::read_value(std::string_view kind, const std::string& name, const Read& read) {
  try {
    read();
  } catch (Error& error) {
    if (error.kind() == ErrorKind::Unsupported) {
      unsupported_.add(concat(kind, " '", name, "'"), error.summary(), "");
    } else {
      record(error.at(scope_->place, ", ", kind, " '", name, "'"));
    }
    if (!name.empty() && !scope_->values.contains(name)) add_placeholder(name);
  }
}

namespace {

// A map becomes two inputs, its keys under the map's name and its values; the metadata has both
// names.
Var add_map(Builder& builder, const ValueInfoProto& input) {
  const auto& map = input.type().map_type();
  const Dim count = Dim::symbol(concat(input.name(), "#items"));
  std::vector<std::string> names;
  const auto add = [&](const char* part, int element_type) {
    const auto dtype = dtype_of(element_type);
    if (!dtype) {
      throw Error("a map holds elements of a type there is not")
          .at("input '", input.name(), "'")
          .got(element_type);
    }
    names.push_back(builder.graph().free_name(concat(input.name(), ".", part)));
    return builder.input(names.back(), TensorType{*dtype, {count}, {}});
  };
  const Var keys = add("keys", map.key_type());
  add("values", map.value_type().tensor_type().elem_type());
  builder.graph().metadata[concat("map ", input.name())] = nlohmann::json(names).dump();
  return keys;
}

}  // namespace

void OnnxImporter::import_inputs(const GraphProto& graph_proto, const std::vector<Type>& given) {
  std::unordered_set<std::string_view> initialized;
  for (const auto& tensor : graph_proto.initializer()) initialized.insert(tensor.name());
  for (const auto& sparse : graph_proto.sparse_initializer()) {
    initialized.insert(sparse.values().name());
  }
  std::size_t position = 0;
  for (const ValueInfoProto& input : graph_proto.input()) {
    // Before IR version 4 every initializer was an input as well; later the combination is a
    // default value, which is imported as a constant.
    if (initialized.contains(input.name())) continue;
    Type type;
    if (position < given.size()) type = given[position];
    ++position;
    if (input.name().empty()) throw Error("an input of the graph has no name");
    read_value("input", input.name(), [&] {
      if (input.type().has_map_type() && !type.is_known()) {
        return add_value(input.name(), add_map(*scope_->builder, input));
      }
      if (!type.is_known()) type = types_.read(input.type(), input.name());
      const std::string name = graph().free_name(input.name() == "_" ? "_input" : input.name());
      add_value(input.name(), scope_->builder->input(name, type));
    });
  }
}

void OnnxImporter::add_constant(const std::string& name, const Constant& value) {
  const std::string wanted = scope_->name_prefix + (name == "_" ? "_constant" : name);
  add_value(name, scope_->builder->constant(value, graph().free_name(wanted)));
}

void OnnxImporter::import_main_constants(GraphProto& graph_proto) {
  std::size_t position = 0;
  for (onnx_schema::TensorProto& tensor : *graph_proto.mutable_initializer()) {
    const std::string name = tensor.name();
    read_value("initializer", name, [&] {
      if (auto elements = file_.read_elements(position++)) {
        add_constant(name, read_tensor(tensor, elements->field, elements->owner, elements->bytes));
      } else {
        add_constant(name, take_tensor(tensor, files_));
      }
    });
  }
}

void OnnxImporter::import_body_constants(const GraphProto& graph_proto) {
  // A function's body is read at each call, so its initializers stay in the message.
  for (const onnx_schema::TensorProto& tensor : graph_proto.initializer()) {
    read_value("initializer", tensor.name(),
               [&] { add_constant(tensor.name(), read_tensor(tensor, model_, files_)); });
  }
}

void OnnxImporter::import_sparse_constants(const GraphProto& graph_proto) {
  for (const onnx_schema::SparseTensorProto& tensor : graph_proto.sparse_initializer()) {
    const std::string& name = tensor.values().name();
    read_value("sparse initializer", name,
               [&] { add_constant(name, read_sparse_tensor(tensor, files_)); });
  }
}

void OnnxImporter::add_value(const std::string& name, Var value) {
  if (name.empty()) throw Error("a value has no name");
  if (!scope_->values.emplace(name, value).second) {
    throw Error(concat("two values are called '", name, "'"))
        .at(scope_->place)
        .expected("every name to be given once in a graph");
  }
}

std::string OnnxImporter::node_place(const NodeProto& node) const {
  const std::string name = name_of(node);
  return name.empty() ? concat(scope_->place, ", node (", op_text(node), ")")
                      : concat(scope_->place, ", node '", name, "' (", op_text(node), ")");
}

void OnnxImporter::import_node(const NodeProto& node) {
  if (++imported_nodes_ > max_nodes_) {
    if (imported_nodes_ == max_nodes_ + 1) {
      record(Error("calls of functions make the model too large")
                 .at(scope_->place)
                 .expected("at most ", kMaxExpandedNodes, " nodes more than the file holds"));
    }
    throw Abandoned{};
  }
  for (const std::string& name : node.input()) {
    if (name.empty() || scope_->values.contains(name)) continue;
    record(Error(concat("nothing makes '", name, "'")).at(node_place(node)));
    add_placeholder(name);
  }
  for (const std::string& name : node.output()) {
    if (name.empty() || !scope_->values.contains(name)) continue;
    if (!scope_->doubtful.contains(name)) {
      record(Error(concat("two values are called '", name, "'"))
                 .at(node_place(node))
                 .expected("every name to be given once in a graph"));
    }
    return define_placeholder_outputs(node);
  }
  const std::size_t first_node = graph().node_id_bound();
  scope_->node = &node;
  scope_->has_renamed_data = false;
  scope_->named.clear();
  try {
    build_node(node);
  } catch (Error& error) {
    if (!error.place().starts_with(source_)) error.at(node_place(node));
    if (!reads_doubtful(node)) record(std::move(error));
    define_placeholder_outputs(node);
  }
  scope_->builder->set_node_name("");
  if (scope_->has_renamed_data) reinfer_renamed(first_node);
  refine_types(node);
  if (!reads_doubtful(node)) return;
  for (const std::string& name : node.output()) {
    if (!name.empty()) scope_->doubtful.insert(name);
  }
}

void OnnxImporter::build_node(const NodeProto& node) {
  if (node.op_type().empty()) throw Error("a node does not say what it does");
  const auto function =
      functions_.find(FunctionKey{plain_domain(node.domain()), node.op_type(), node.overload()});
  try {
    return function != functions_.end() ? call_function(function->second, node) : run_handler(node);
  } catch (const NotSupported& refusal) {
    refuse(node, refusal.reason);
  } catch (const Abandoned&) {
    // The error is recorded.
    if (imported_nodes_ > max_nodes_) throw;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Unsupported) throw;
    refuse(node, error.summary());
  } catch (InternalError& error) {
    // A handler that expects a tensor and gets another type indicates an invalid model.
    const std::string odd = input_without_type(node);
    if (!odd.empty()) refuse(node, concat("the type of '", odd, "' is not known"));
    error.locate(node_place(node));
    if (!has_problems()) throw;
  }
  define_placeholder_outputs(node);
}

void OnnxImporter::refuse(const NodeProto& node, const std::string& reason) {
  const bool is_unknown = reason.empty();
  if (is_unknown || !reads_doubtful(node)) unsupported_.add(op_text(node), reason, name_of(node));
}

void OnnxImporter::run_handler(const NodeProto& node) {
  const std::string domain = plain_domain(node.domain());
  const auto opset = scope_->opsets->find(domain);
  const Handler* handler = find_handler(domain, node.op_type());
  const std::string custom_name = custom_op_name(domain, node.op_type());
  const bool is_custom = handler == nullptr && find_custom_op(custom_name) != nullptr;
  if (!handler && !is_custom) throw NotSupported{""};
  if (opset == scope_->opsets->end()) {
    throw Error(concat("the model imports no opset for the domain '",
                       domain.empty() ? "ai.onnx" : domain, "'"))
        .expected("an entry in opset_import for every domain in use");
  }
  scope_->builder->set_node_name(node.name());
  NodeImport import(*this, node, opset->second, *scope_->builder);
  if (is_custom) {
    import_custom(import, node, custom_name);
  } else {
    require_attributes(node, attribute_names(domain, node.op_type(), opset->second));
    handler->import(import);
  }
  import.refuse_further_inputs();
  for (const std::string& name : node.output()) {
    if (name.empty() || scope_->values.contains(name)) continue;
    throw NotSupported{concat("its output '", name, "'")};
  }
}

void OnnxImporter::require_attributes(const NodeProto& node, std::string_view known) {
  try {
    require_known_attributes(node, known);
  } catch (Error& error) {
    record(error.at(node_place(node)));
    throw Abandoned{};
  }
}

bool OnnxImporter::reads_doubtful(const NodeProto& node) const {
  return std::ranges::any_of(
      node.input(), [&](const std::string& name) { return scope_->doubtful.contains(name); });
}

void OnnxImporter::record(Error error) {
  if (!error.place().starts_with(source_)) {
    error.at(error.has_place() ? concat(source_, ", ", error.place()) : source_);
  }
  if (errors_.size() < kMaxErrors) errors_.push_back(std::move(error));
}

void OnnxImporter::raise_problems() {
  try {
    unsupported_.raise("import", source_);
  } catch (const Error& error) {
    errors_.push_back(error);
  }
  if (errors_.empty()) return;
  Error first = errors_.front();
  first.set_further({errors_.begin() + 1, errors_.end()});
  throw first;
}

std::string OnnxImporter::input_without_type(const NodeProto& node) {
  for (const std::string& name : node.input()) {
    if (name.empty() || !scope_->values.at(name).is_valid()) continue;
    if (!scope_->builder->type(scope_->values.at(name)).is_tensor()) return name;
  }
  return "";
}

void OnnxImporter::add_placeholder(const std::string& name) {
  Type type;
  const auto declared = scope_->declared_types.find(name);
  try {
    if (declared != scope_->declared_types.end()) type = types_.read(*declared->second, name);
  } catch (const Error&) {
    // The graph will be discarded.
  }
  scope_->doubtful.insert(name);
  add_value(name, scope_->builder->input(graph().free_name(name == "_" ? "_x" : name), type));
}

void OnnxImporter::define_placeholder_outputs(const NodeProto& node) {
  for (const std::string& name : node.output()) {
    if (!name.empty() && !scope_->values.contains(name)) add_placeholder(name);
  }
}

std::string OnnxImporter::result_name(const std::string& name) const {
  const std::string wanted = scope_->name_prefix + (name == "_" ? "_value" : name);
  return scope_->builder->graph().free_name(wanted);
}

void OnnxImporter::define(const std::string& name, Var value, bool may_rename) {
  add_value(name, value);
  if (!may_rename) return;
  const ValueId id(value.id());
  const bool is_new = scope_->named.insert(id).second;  // else one value for two outputs
  if (!is_new || graph().value(id).name == scope_->name_prefix + name) return;
  graph().rename(id, result_name(name));
  scope_->has_renamed_data |= depends_on_data(graph().value(id).type);
}

// Data-dependent extents are named after the value; without reinference, the next value with the
// freed name would share them.
void OnnxImporter::reinfer_renamed(std::size_t first_node) {
  for (std::size_t k = first_node; k < graph().node_id_bound(); ++k) graph().infer(NodeId(k));
}

void OnnxImporter::refine_types(const NodeProto& node) {
  for (const std::string& name : node.output()) {
    const auto declared = scope_->declared_types.find(name);
    if (name.empty() || declared == scope_->declared_types.end()) continue;
    const ValueId id(scope_->values.at(name).id());
    if (graph().value(id).type.is_known()) continue;
    try {
      const Type type = types_.read(*declared->second, graph().value(id).name);
      if (type.is_known()) graph().set_type(id, type);
    } catch (const Error&) {
      // Declared types are hints: an invalid one leaves the type unknown.
    }
  }
}

// Callers allocate outputs by their element types. The inferred extents replace contradictory
// declarations, as in ONNX Runtime.
void OnnxImporter::check_declared_type(const ValueInfoProto& output, const Type& made) {
  // A list of maps is imported as the matrix of its values.
  const auto& type = output.type();
  if (type.has_sequence_type() && type.sequence_type().elem_type().has_map_type()) return;
  const Type declared = types_.read(output.type(), output.name());
  if (may_be_equal(declared, made)) return;
  if (declared.is_tensor() && made.is_tensor() && declared.tensor().dtype == made.tensor().dtype) {
    return warn(concat("output '", output.name(), "' is declared as ", declared, " but is ", made));
  }
  record(Error(concat("output '", output.name(), "' is not what the model says it is"))
             .at(scope_->place)
             .expected(declared, ", as declared")
             .got(made));
}

void OnnxImporter::import_outputs(const GraphProto& graph_proto) {
  for (const ValueInfoProto& output : graph_proto.output()) {
    const std::string& name = output.name();
    const auto found = scope_->values.find(name);
    if (found == scope_->values.end() || !found->second.is_valid()) {
      record(Error(concat("nothing makes the output '", name, "'")).at(scope_->place));
      continue;
    }
    Var value = found->second;
    const ValueId id(value.id());
    const Value& made = graph().value(id);
    if (!scope_->outer && !scope_->doubtful.contains(name)) check_declared_type(output, made.type);
    if (has_problems()) continue;
    if (!made.producer || graph().is_output(id)) {
      // A caller gets a separate buffer for each output; values that are not tensors have none.
      if (made.type.is_known() && !made.type.is_tensor()) {
        scope_->builder->output(value);
        continue;
      }
      value = scope_->builder->call("identity", {value}, {}, graph().free_name(name));
    } else if (const ValueId other = graph().find(name); other && other != id) {
      graph().swap_names(id, other);
    } else if (!other) {
      graph().rename(id, name == "_" ? graph().free_name("_output") : name);
    }
    scope_->builder->output(value);
  }
}

Graph import_onnx(const std::string& path, std::vector<std::string>* warnings) {
  return OnnxImporter(ModelFile(path), path, ExternalFiles(folder_of(path)), warnings).run();
}

Graph import_onnx(std::span<const std::byte> bytes, std::optional<std::string> folder,
                  const std::string& source, std::vector<std::string>* warnings) {
  ExternalFiles files;
  if (folder) files = ExternalFiles(*std::move(folder));
  return OnnxImporter(ModelFile(bytes, source), source, std::move(files), warnings).run();
}

}  // namespace tenon::frontends::onnx
