#include "frontends/onnx/exporter.h"

#include "base/error.h"
#include "base/text.h"
#include "frontends/onnx/schema/onnx.pb.h"
#include "frontends/onnx/tensor_proto.h"
#include "frontends/onnx/type_proto.h"
#include "frontends/onnx/versions.h"

#include <algorithm>

namespace tenon::frontends::onnx {
namespace {

using onnx_schema::AttributeProto;
using onnx_schema::GraphProto;

constexpr int kFirstOpset = 13;

// IR version of the ONNX release that introduced the opset; at least 4, since which initializers
// need not be inputs.
int ir_version_of(int opset) {
  struct Release {
    int opset, ir_version;
  };
  constexpr Release releases[] = {{25, 13}, {24, 12}, {23, 11}, {21, 10}, {19, 9},
                                  {15, 8},  {12, 7},  {11, 6},  {10, 5}};
  for (const Release& release : releases) {
    if (opset >= release.opset) return release.ir_version;
  }
  return 4;
}

// The opset that introduced an element type.
int first_opset_of(DType dtype) {
  switch (dtype) {
    case DType::F8E4M3FN:
    case DType::F8E4M3FNUZ:
    case DType::F8E5M2:
    case DType::F8E5M2FNUZ:
      return 19;
    case DType::I4:
    case DType::U4:
      return 21;
    case DType::F4E2M1:
      return 23;
    case DType::F8E8M0:
      return 24;
    case DType::I2:
    case DType::U2:
      return 25;
    case DType::BF16:
      return 13;
    default:
      return 1;
  }
}

// Keys of the model's own fields, in contrast to free-form properties.
bool is_own_field(std::string_view key) {
  return key == "producer_name" || key == "producer_version" || key == "domain" ||
         key == "model_version" || key == "opset";
}

bool knows_types(const Graph& graph, const Node& node) {
  const auto is_known = [&](ValueId id) { return !id || graph.value(id).type.is_known(); };
  return std::ranges::all_of(node.operands, is_known) &&
         std::ranges::all_of(node.results, is_known);
}

}  // namespace

OnnxExporter::OnnxExporter(const Graph& graph, const ExportOptions& options)
    : graph_(graph), options_(options) {
  if (options.opset && (*options.opset < 9 || *options.opset > kNewestOpset)) {
    throw Error(concat("cannot write opset ", *options.opset), ErrorKind::Usage)
        .expected("an opset from 9 to ", kNewestOpset);
  }
}
OnnxExporter::~OnnxExporter() = default;

const onnx_schema::ModelProto& OnnxExporter::run() {
  opset_ = options_.opset.value_or(kFirstOpset);
  needed_opset_ = opset_;
  // A rule may choose another form for a newer opset, so all nodes are written again after the
  // opset grows.
  while (true) {
    write_model();
    if (needed_opset_ == opset_) break;
    opset_ = needed_opset_;
  }
  unsupported_.raise("export",
                     graph_.name.empty() ? "the graph" : concat("graph '", graph_.name, "'"));
  return *model_;
}

void OnnxExporter::need_opset(int version) {
  if (version <= opset_) return;
  if (options_.opset) {
    throw Error(concat("it needs opset ", version), ErrorKind::Unsupported);
  }
  needed_opset_ = std::max(needed_opset_, version);
}

void OnnxExporter::write_model() {
  model_ = std::make_unique<onnx_schema::ModelProto>();
  constants_.clear();
  used_names_.clear();
  used_node_names_.clear();
  other_domains_.clear();
  unsupported_ = {};

  ExportFrame frame{.graph = &graph_, .proto = model_->mutable_graph()};
  frame_ = &frame;
  frame.proto->set_name(graph_.name.empty() ? "graph" : graph_.name);
  // Names in the graph have priority over generated ones.
  for (std::size_t k = 0; k < graph_.value_id_bound(); ++k) {
    used_names_.insert(graph_.value(ValueId(k)).name);
  }
  frame.names.resize(graph_.value_id_bound());
  for (std::size_t k = 0; k < graph_.value_id_bound(); ++k) {
    frame.names[k] = graph_.value(ValueId(k)).name;
  }
  frame.is_local.resize(graph_.value_id_bound());
  write_inputs(graph_.inputs().size());
  write_nodes();
  write_outputs();
  write_metadata();
  frame_ = nullptr;
}

void OnnxExporter::write_metadata() {
  model_->set_ir_version(ir_version_of(std::max(opset_, needed_opset_)));
  const auto text = [&](const std::string& key, const std::string& otherwise) {
    const auto found = graph_.metadata.find(key);
    return found == graph_.metadata.end() ? otherwise : found->second;
  };
  model_->set_producer_name(text("producer_name", "tenon"));
  if (const std::string version = text("producer_version", ""); !version.empty()) {
    model_->set_producer_version(version);
  }
  if (const std::string domain = text("domain", ""); !domain.empty()) model_->set_domain(domain);
  if (const auto version = parse_integer(text("model_version", ""))) {
    model_->set_model_version(*version);
  }
  for (const auto& [key, value] : graph_.metadata) {
    if (is_own_field(key)) continue;
    auto& entry = *model_->add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  auto& main = *model_->add_opset_import();
  main.set_domain("");
  main.set_version(opset_);
  for (const auto& [domain, version] : other_domains_) {
    auto& import = *model_->add_opset_import();
    import.set_domain(domain);
    import.set_version(version);
  }
}

void OnnxExporter::write_inputs(std::size_t own_count) {
  const Graph& graph = *frame_->graph;
  for (std::size_t k = 0; k < own_count; ++k) {
    const Value& value = graph.value(graph.inputs()[k]);
    if (!value.type.is_known() && !frame_->outer) {
      unsupported_.add(concat("input '", value.name, "'"), "its type is not known", "");
    }
    auto& input = *frame_->proto->add_input();
    input.set_name(frame_->names[graph.inputs()[k].index()]);
    write_type(value.type, *input.mutable_type());
    if (!value.type.is_tensor()) continue;
    try {
      need_opset(first_opset_of(value.type.tensor().dtype));
    } catch (const Error& error) {
      unsupported_.add(concat("input '", value.name, "'"), error.summary(), "");
    }
  }
}

void OnnxExporter::write_nodes() {
  const Graph& graph = *frame_->graph;
  for (NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    try {
      if (node.results.size() == 1 && graph.constant_of(node.results[0])) {
        const Constant& value = *graph.constant_of(node.results[0]);
        need_opset(first_opset_of(value.dtype()));
        // Constants of bodies also become initializers of the main graph, which are visible in
        // bodies.
        constants_.push_back({frame_->names[node.results[0].index()], value});
        continue;
      }
      write_node(id);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Unsupported) throw;
      unsupported_.add(node.op->name, error.summary(), node.name);
    } catch (const InternalError&) {
      if (knows_types(graph, node)) throw;
      unsupported_.add(node.op->name, "a type is not known", node.name);
    }
    for (ValueId result : node.results) {
      if (!result) continue;
      frame_->is_local[result.index()] = true;
      if (!graph.has_stated_type(result)) continue;
      auto& info = *frame_->proto->add_value_info();
      info.set_name(frame_->names[result.index()]);
      write_type(graph.value(result).type, *info.mutable_type());
    }
  }
}

void OnnxExporter::write_node(NodeId id) {
  const Node& node = frame_->graph->node(id);
  const ExportRule* rule = find_export_rule(node.op->name);
  if (!rule) return unsupported_.add(node.op->name, "", node.name);
  node_name_ = node.name;
  NodeExport writer(*this, *frame_->graph, id);
  rule->write(writer);
}

void OnnxExporter::write_outputs() {
  const Graph& graph = *frame_->graph;
  node_name_.clear();
  std::unordered_set<std::string> written;
  for (ValueId id : graph.outputs()) {
    std::string name = frame_->names[id.index()];
    // A subgraph must produce its outputs itself, and its outputs must have distinct names.
    const bool is_constant = !frame_->outer && graph.constant_of(id);
    if ((!frame_->is_local[id.index()] && !is_constant) || written.contains(name)) {
      const std::string copy = fresh(name);
      add_node("Identity", {name}, {copy}, {}, "");
      name = copy;
    }
    written.insert(name);
    auto& output = *frame_->proto->add_output();
    output.set_name(name);
    write_type(graph.value(id).type, *output.mutable_type());
  }
}

void OnnxExporter::write_body(const OnnxBody& body, GraphProto& proto) {
  const Graph& graph = *body.graph;
  TENON_ASSERT(body.captured.size() <= graph.inputs().size(),
               "a body has inputs for what it captures");
  ExportFrame frame{.graph = &graph, .outer = frame_, .proto = &proto};
  const std::size_t own_count = graph.inputs().size() - body.captured.size();
  frame.names.resize(graph.value_id_bound());
  frame.is_local.resize(graph.value_id_bound());
  for (std::size_t k = 0; k < body.captured.size(); ++k) {
    frame.names[graph.inputs()[own_count + k].index()] = body.captured[k];
  }
  for (std::size_t k = 0; k < graph.value_id_bound(); ++k) {
    if (frame.names[k].empty()) frame.names[k] = fresh(graph.value(ValueId(k)).name);
  }
  const std::string outer_node_name = node_name_;
  frame_ = &frame;
  proto.set_name(graph.name.empty() ? "body" : graph.name);
  write_inputs(own_count);
  write_nodes();
  write_outputs();
  frame_ = frame.outer;
  node_name_ = outer_node_name;
}

std::string OnnxExporter::fresh(std::string_view hint) {
  std::string name(hint.empty() ? "value" : hint);
  for (int suffix = 1; !used_names_.insert(name).second; ++suffix) {
    name = concat(hint.empty() ? "value" : hint, "_", suffix);
  }
  return name;
}

std::string OnnxExporter::add_constant(const Constant& value, std::string_view hint) {
  need_opset(first_opset_of(value.dtype()));
  constants_.push_back({fresh(hint), value});
  return constants_.back().name;
}

void OnnxExporter::add_node(const std::string& op_type, const std::vector<std::string>& inputs,
                            const std::vector<std::string>& outputs,
                            const std::vector<OnnxAttr>& attrs, const std::string& domain) {
  // Bodies come first: values of the outer graph that they need precede the node.
  onnx_schema::NodeProto node;
  node.set_op_type(op_type);
  if (!domain.empty()) {
    node.set_domain(domain);
    other_domains_[domain] = 1;
  }
  std::size_t input_count = inputs.size(), output_count = outputs.size();
  while (input_count > 0 && inputs[input_count - 1].empty()) --input_count;
  while (output_count > 0 && outputs[output_count - 1].empty()) --output_count;
  for (std::size_t k = 0; k < input_count; ++k) node.add_input(inputs[k]);
  for (std::size_t k = 0; k < output_count; ++k) node.add_output(outputs[k]);
  if (!node_name_.empty()) {
    std::string name = node_name_;
    for (int suffix = 1; !used_node_names_.insert(name).second; ++suffix) {
      name = concat(node_name_, "/", op_type, suffix == 1 ? "" : concat("_", suffix));
    }
    node.set_name(name);
  }
  for (const OnnxAttr& given : attrs) {
    AttributeProto& attr = *node.add_attribute();
    attr.set_name(given.name);
    if (const auto* integer = std::get_if<std::int64_t>(&given.value)) {
      attr.set_type(AttributeProto::INT);
      attr.set_i(*integer);
    } else if (const auto* real = std::get_if<double>(&given.value)) {
      attr.set_type(AttributeProto::FLOAT);
      attr.set_f(static_cast<float>(*real));
    } else if (const auto* text = std::get_if<std::string>(&given.value)) {
      attr.set_type(AttributeProto::STRING);
      attr.set_s(*text);
    } else if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&given.value)) {
      attr.set_type(AttributeProto::INTS);
      attr.mutable_ints()->Assign(integers->begin(), integers->end());
    } else if (const auto* reals = std::get_if<std::vector<double>>(&given.value)) {
      attr.set_type(AttributeProto::FLOATS);
      for (double value : *reals) attr.add_floats(static_cast<float>(value));
    } else if (const auto* texts = std::get_if<std::vector<std::string>>(&given.value)) {
      attr.set_type(AttributeProto::STRINGS);
      for (const std::string& value : *texts) attr.add_strings(value);
    } else if (const auto* tensor = std::get_if<Tensor>(&given.value)) {
      attr.set_type(AttributeProto::TENSOR);
      write_tensor(*tensor, *attr.mutable_t());
    } else if (const auto* type = std::get_if<Type>(&given.value)) {
      attr.set_type(AttributeProto::TYPE_PROTO);
      write_type(*type, *attr.mutable_tp());
    } else {
      attr.set_type(AttributeProto::GRAPH);
      write_body(std::get<OnnxBody>(given.value), *attr.mutable_g());
    }
  }
  *frame_->proto->add_node() = std::move(node);
}

}  // namespace tenon::frontends::onnx
