// Nested scopes: function calls and the bodies of control flow.
#include "base/error.h"
#include "base/text.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/outer_names.h"
#include "frontends/onnx/schema/onnx.pb.h"
#include "frontends/onnx/tensor_proto.h"
#include "ops/definition/var_ops.h"

#include <unordered_set>

namespace tenon::frontends::onnx {
namespace {

using onnx_schema::AttributeProto;
using onnx_schema::GraphProto;
using onnx_schema::NodeProto;

constexpr int kMaxDepth = 100;

// An outer constant up to this size is duplicated in a body instead of captured: there it still
// determines shapes, axes and trip counts.
constexpr std::int64_t kMaxRepeatedElements = 256;

// Values in a function are prefixed with the enclosing calls, up to this length, because a long
// name would be repeated for every value.
constexpr std::size_t kMaxPrefix = 512;

std::string longer_prefix(const std::string& prefix, const std::string& caller) {
  return prefix.size() + caller.size() > kMaxPrefix ? prefix : concat(prefix, caller, "/");
}

// Casts a float to the type that the body declares.
Var as_stated(Var given, const onnx_schema::ValueInfoProto& input) {
  const std::optional<DType> stated = dtype_of(input.type().tensor_type().elem_type());
  const Type& type = given.builder().type(given);
  if (!stated || !is_float(*stated) || !type.is_tensor() || !is_float(type.tensor().dtype))
    return given;
  return cast_to(given, *stated);
}

}  // namespace

BoundAttr OnnxImporter::resolve(const AttributeProto& attr) {
  if (attr.ref_attr_name().empty()) return {&attr, scope_};
  if (!scope_->arguments) {
    throw Error(concat("attribute '", attr.name(), "' refers to '", attr.ref_attr_name(),
                       "' of a function, but is in none"));
  }
  const auto argument = scope_->arguments->find(attr.ref_attr_name());
  return argument == scope_->arguments->end() ? BoundAttr{} : argument->second;
}

void OnnxImporter::call_function(Function& function, const NodeProto& node) {
  const onnx_schema::FunctionProto& proto = *function.proto;
  const std::string place = node_place(node);
  if (function.is_active) {
    throw Error(concat("function '", proto.name(), "' calls itself")).at(place);
  }
  if (depth_ >= kMaxDepth) throw Error("functions call each other too deeply").at(place);
  if (node.input_size() > proto.input_size() || node.output_size() > proto.output_size()) {
    throw Error(concat("function '", proto.name(), "' is called with too many values"))
        .at(place)
        .expected(proto.input_size(), " inputs, ", proto.output_size(), " outputs")
        .got(node.input_size(), " inputs, ", node.output_size(), " outputs");
  }
  std::vector<std::string> known(proto.attribute().begin(), proto.attribute().end());
  std::unordered_map<std::string, BoundAttr> arguments;
  for (const AttributeProto& attr : proto.attribute_proto()) {
    arguments[attr.name()] = {&attr, scope_};
    known.push_back(attr.name());
  }
  require_attributes(node, join(known, " "));
  for (const AttributeProto& attr : node.attribute()) {
    if (const BoundAttr bound = resolve(attr); bound.attr) arguments[attr.name()] = bound;
  }

  const std::size_t first_value = graph().value_id_bound();
  const std::string caller = node.name().empty() ? proto.name() : node.name();
  Scope inside{.builder = scope_->builder,
               .opsets = &function.opsets,
               .arguments = &arguments,
               .name_prefix = longer_prefix(scope_->name_prefix, caller),
               .place = place};
  // Captured inputs of a body have the same positions for functions called in that body.
  inside.outer = scope_->outer;
  inside.captured = scope_->captured;
  for (int k = 0; k < proto.input_size(); ++k) {
    const bool is_given = k < node.input_size() && !node.input(k).empty();
    if (!inside.values.emplace(proto.input(k), is_given ? scope_->values.at(node.input(k)) : Var())
             .second) {
      throw Error(
          concat("function '", proto.name(), "' has two inputs called '", proto.input(k), "'"))
          .at(place);
    }
    if (is_given && scope_->doubtful.contains(node.input(k)))
      inside.doubtful.insert(proto.input(k));
  }
  for (const auto& value : proto.value_info()) {
    inside.declared_types.emplace(value.name(), &value.type());
  }
  {
    const ScopeGuard guard(*this, inside);
    const DepthGuard level(depth_);
    function.is_active = true;
    for (const NodeProto& inner : proto.node()) import_node(inner);
    function.is_active = false;
  }
  for (int k = 0; k < node.output_size(); ++k) {
    if (node.output(k).empty()) continue;
    const auto made = inside.values.find(proto.output(k));
    if (made == inside.values.end() || !made->second.is_valid()) {
      throw Error(
          concat("function '", proto.name(), "' does not make its output '", proto.output(k), "'"))
          .at(place);
    }
    define(node.output(k), made->second, made->second.id() >= first_value);
    if (inside.doubtful.contains(proto.output(k))) scope_->doubtful.insert(node.output(k));
  }
}

NodeImport::Bodies OnnxImporter::import_bodies(const std::vector<BoundAttr>& graphs,
                                               const std::vector<std::vector<Type>>& input_types) {
  if (depth_ >= kMaxDepth) throw Error("bodies and functions are nested too deeply");
  std::vector<std::string> names;
  OuterNames outer_names(names);
  for (const BoundAttr& bound : graphs) {
    if (bound.scope->builder != scope_->builder) {
      throw NotSupported{"a graph given to a function is used in the body of another node"};
    }
    outer_names.visit(bound.attr->g());
  }
  NodeImport::Bodies bodies;
  std::unordered_set<std::uint32_t> seen;
  for (const std::string& name : names) {
    for (const BoundAttr& bound : graphs) {
      const auto found = bound.scope->values.find(name);
      if (found == bound.scope->values.end() || !found->second.is_valid()) continue;
      const Constant* constant = graph().constant_of(ValueId(found->second.id()));
      if (constant && constant->size() <= kMaxRepeatedElements) continue;
      if (seen.insert(found->second.id()).second) bodies.captured.push_back(found->second);
    }
  }
  const DepthGuard level(depth_);
  for (std::size_t k = 0; k < graphs.size(); ++k) {
    const std::vector<Type>& types = k < input_types.size() ? input_types[k] : std::vector<Type>{};
    bodies.graphs.push_back(import_body(graphs[k], types, bodies.captured));
  }
  if (has_problems()) throw Abandoned{};  // a body may lack its outputs
  return bodies;
}

Graph OnnxImporter::import_body(const BoundAttr& attr, const std::vector<Type>& input_types,
                                const std::vector<Var>& captured) {
  const GraphProto& proto = attr.attr->g();
  Scope& around = *attr.scope;
  Graph& outside = around.builder->graph();
  const bool is_doubtful = reads_doubtful(*scope_->node);
  Builder builder(proto.name());
  Scope inside{.builder = &builder,
               .outer = &around,
               .opsets = around.opsets,
               .arguments = around.arguments,
               .place = concat(node_place(*scope_->node), ", body '", attr.attr->name(), "'")};
  const ScopeGuard guard(*this, inside);
  declare_types(proto);
  import_inputs(proto, input_types);
  if (is_doubtful) {
    for (const auto& input : proto.input()) inside.doubtful.insert(input.name());
  }
  std::unordered_map<std::uint32_t, Var> inner;
  for (Var value : captured) {
    const Value& outer_value = outside.value(ValueId(value.id()));
    const Var input = builder.input(builder.graph().free_name(outer_value.name), outer_value.type);
    inner.emplace(value.id(), input);
    inside.captured.emplace(ValueId(input.id()), value);
  }
  std::vector<std::string> names;
  OuterNames(names).visit(proto);
  for (const std::string& name : names) {
    const auto found = around.values.find(name);
    if (found == around.values.end() || !found->second.is_valid()) continue;
    if (around.doubtful.contains(name)) inside.doubtful.insert(name);
    if (const auto input = inner.find(found->second.id()); input != inner.end()) {
      add_value(name, input->second);
    } else {
      add_constant(name, *outside.constant_of(ValueId(found->second.id())));
    }
  }
  import_body_constants(proto);
  import_sparse_constants(proto);
  for (const NodeProto& node : proto.node()) import_node(node);
  import_outputs(proto);
  return std::move(builder.graph());  // verified with the whole graph
}

std::vector<Var> OnnxImporter::inline_body(const BoundAttr& attr, const std::vector<Var>& inputs) {
  const GraphProto& proto = attr.attr->g();
  if (depth_ >= kMaxDepth) throw Error("bodies and functions are nested too deeply");
  if (attr.scope->builder != scope_->builder) {
    throw NotSupported{"a graph given to a function is used in the body of another node"};
  }
  const std::string place = concat(node_place(*scope_->node), ", body '", attr.attr->name(), "'");
  if (static_cast<std::size_t>(proto.input_size()) != inputs.size()) {
    throw Error("the body has the wrong number of inputs")
        .at(place)
        .expected(inputs.size())
        .got(proto.input_size());
  }
  const std::string& caller = scope_->node->name().empty() ? proto.name() : scope_->node->name();
  Scope inside{.builder = scope_->builder,
               .opsets = attr.scope->opsets,
               .arguments = attr.scope->arguments,
               .name_prefix = longer_prefix(scope_->name_prefix, caller),
               .place = place};
  inside.doubtful = attr.scope->doubtful;
  inside.outer = attr.scope->outer;
  inside.captured = attr.scope->captured;
  std::vector<std::string> names;
  OuterNames(names).visit(proto);
  for (const std::string& name : names) {
    const auto found = attr.scope->values.find(name);
    if (found != attr.scope->values.end()) inside.values.insert(*found);
  }
  const ScopeGuard guard(*this, inside);
  declare_types(proto);
  for (int k = 0; k < proto.input_size(); ++k) {
    add_value(proto.input(k).name(),
              as_stated(inputs[static_cast<std::size_t>(k)], proto.input(k)));
  }
  import_body_constants(proto);
  import_sparse_constants(proto);
  const DepthGuard level(depth_);
  for (const NodeProto& node : proto.node()) import_node(node);
  if (has_problems()) throw Abandoned{};  // the body may lack its outputs
  std::vector<Var> outputs;
  for (const auto& output : proto.output()) {
    const auto made = inside.values.find(output.name());
    if (made == inside.values.end() || !made->second.is_valid()) {
      throw Error(concat("nothing makes the output '", output.name(), "'")).at(place);
    }
    outputs.push_back(made->second);
  }
  return outputs;
}

const Constant* OnnxImporter::constant_of(const Scope& scope, Var value) const {
  const ValueId id(value.id());
  if (const Constant* constant = scope.builder->graph().constant_of(id)) return constant;
  const auto outer_value = scope.captured.find(id);
  if (!scope.outer || outer_value == scope.captured.end()) return nullptr;
  return constant_of(*scope.outer, outer_value->second);
}

Tensor OnnxImporter::read(const AttributeProto& attr) {
  if (attr.has_sparse_tensor())
    return read_sparse_tensor(attr.sparse_tensor(), files_).materialise();
  return read_tensor(attr.t(), model_, files_);
}

}  // namespace tenon::frontends::onnx
