#include "frontends/onnx/outer_names.h"

#include "frontends/onnx/schema/onnx.pb.h"

namespace tenon::frontends::onnx {

void OuterNames::visit(const onnx_schema::GraphProto& graph) {
  std::unordered_set<std::string_view> own;
  inside_.push_back(&own);
  for (const auto& input : graph.input()) own.insert(input.name());
  for (const auto& tensor : graph.initializer()) own.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) own.insert(tensor.values().name());
  for (const auto& node : graph.node()) {
    for (const std::string& name : node.input()) read(name);
    for (const auto& attr : node.attribute()) {
      if (attr.has_g()) visit(attr.g());
      for (const auto& nested : attr.graphs()) visit(nested);
    }
    for (const std::string& name : node.output()) own.insert(name);
  }
  for (const auto& output : graph.output()) read(output.name());
  inside_.pop_back();
}

void OuterNames::read(const std::string& name) {
  if (name.empty()) return;
  for (const auto* own : inside_) {
    if (own->contains(name)) return;
  }
  if (seen_.insert(name).second) names_.push_back(name);
}

}  // namespace tenon::frontends::onnx
