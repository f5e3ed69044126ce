#include "base/error.h"
#include "frontends/onnx/body_call.h"
#include "ir/node_rules.h"

namespace tenon::frontends::onnx {
namespace {

// Type of an input inside the body: an item with symbolic extents, or a whole tensor.
Type body_type(const NodeImport& node, std::size_t index, const std::string& name) {
  const Type& type = node.type(node.input(index));
  if (type.kind() != Type::Kind::Sequence) return type;
  Type item = type.element();
  if (!item.is_tensor()) return item;
  for (std::size_t axis = 0; axis < item.tensor().rank(); ++axis) {
    Dim& dim = item.tensor().dims[axis];
    const bool may_vary = depends_on_data(TensorType{DType::F32, {dim}, {}});
    if (may_vary) dim = Dim::symbol(concat(name, ".", index, "#", axis));
  }
  return item;
}

void import_sequence_map(NodeImport& node) {
  std::vector<Var> values = node.inputs();
  const std::string name = node.output_names(1).front();
  std::vector<Type> types;
  for (std::size_t k = 0; k < values.size(); ++k) types.push_back(body_type(node, k, name));
  NodeImport::Bodies bodies = node.bodies({"body"}, {types});
  const auto input_count = static_cast<std::int64_t>(values.size());
  values.insert(values.end(), bodies.captured.begin(), bodies.captured.end());
  const std::size_t count = bodies.graphs[0].outputs().size();
  call_with_bodies(node, "sequence_map", values, {{"input_count", input_count}},
                   std::move(bodies.graphs), count);
}

void import_optional(NodeImport& node) {
  Attributes attrs;
  if (!node.has_input(0)) attrs.set("type", node.type_attr("type"));
  node.output(node.build.call_all("optional", node.inputs(), attrs, node.output_names(1)).front());
}

constexpr Handler sequence_table[] = {
    {"Optional", import_optional},
    {"SequenceMap", import_sequence_map},
};

}  // namespace

std::span<const Handler> sequence_handlers() { return sequence_table; }

}  // namespace tenon::frontends::onnx
