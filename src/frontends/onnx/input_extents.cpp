#include "frontends/onnx/input_extents.h"

#include "frontends/onnx/importer.h"
#include "frontends/onnx/schema/onnx.pb.h"

#include <unordered_set>

namespace tenon::frontends::onnx {
namespace {

using onnx_schema::GraphProto;
using onnx_schema::NodeProto;
using onnx_schema::ValueInfoProto;

void forget_extents(GraphProto& graph);

void forget_extents(google::protobuf::RepeatedPtrField<NodeProto>& nodes) {
  for (NodeProto& node : nodes) {
    for (auto& attr : *node.mutable_attribute()) {
      if (attr.has_g()) forget_extents(*attr.mutable_g());
      for (GraphProto& body : *attr.mutable_graphs()) forget_extents(body);
    }
  }
}

void forget_extents(GraphProto& graph) {
  graph.clear_value_info();
  for (ValueInfoProto& output : *graph.mutable_output()) {
    if (output.type().has_tensor_type())
      output.mutable_type()->mutable_tensor_type()->clear_shape();
  }
  forget_extents(*graph.mutable_node());
}

}  // namespace

Graph import_with_extents(const std::string& path,
                          const std::vector<std::optional<Dims>>& extents) {
  ModelFile file(path);
  onnx_schema::ModelProto& model = *file.message();
  GraphProto& main = *model.mutable_graph();
  forget_extents(main);
  for (auto& function : *model.mutable_functions()) {
    function.clear_value_info();
    forget_extents(*function.mutable_node());
  }
  std::unordered_set<std::string> initialized;
  for (const auto& tensor : main.initializer()) initialized.insert(tensor.name());
  for (const auto& sparse : main.sparse_initializer()) initialized.insert(sparse.values().name());
  std::size_t position = 0;
  for (ValueInfoProto& input : *main.mutable_input()) {
    if (initialized.contains(input.name())) continue;
    const std::size_t k = position++;
    if (k >= extents.size() || !extents[k]) continue;
    auto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
    shape.clear_dim();
    for (const Dim& extent : *extents[k]) {
      auto& dim = *shape.add_dim();
      if (extent.is_constant()) {
        dim.set_dim_value(extent.constant());
      } else {
        dim.set_dim_param(to_string(extent));
      }
    }
  }
  return OnnxImporter(std::move(file), path, ExternalFiles(folder_of(path))).run();
}

}  // namespace tenon::frontends::onnx
