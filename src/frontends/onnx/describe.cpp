#include "frontends/onnx/describe.h"

#include "base/error.h"
#include "base/text.h"
#include "frontends/onnx/model_file.h"
#include "frontends/onnx/schema/onnx.pb.h"

#include <algorithm>
#include <map>

namespace tenon::frontends::onnx {
namespace {

std::string type_text(const onnx_schema::TypeProto& type) {
  if (!type.has_tensor_type()) return type.has_sequence_type() ? "sequence" : "other";
  std::vector<std::string> dims;
  for (const auto& dim : type.tensor_type().shape().dim())
    dims.push_back(dim.has_dim_value()       ? std::to_string(dim.dim_value())
                   : dim.dim_param().empty() ? "?"
                                             : dim.dim_param());
  const std::string element =
      onnx_schema::TensorProto::DataType_IsValid(type.tensor_type().elem_type())
          ? onnx_schema::TensorProto::DataType_Name(
                static_cast<onnx_schema::TensorProto::DataType>(type.tensor_type().elem_type()))
          : "?";
  return concat(element, "[", join(dims, ", "), "]");
}

void count(const onnx_schema::GraphProto& graph, std::map<std::string, std::size_t>& counts) {
  for (const auto& node : graph.node()) {
    ++counts[node.domain().empty() ? node.op_type() : concat(node.domain(), ".", node.op_type())];
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) count(attribute.g(), counts);
      for (const auto& body : attribute.graphs()) count(body, counts);
    }
  }
}

}  // namespace

Page describe_file(const std::string& path) {
  const ModelFile file(path);
  const onnx_schema::ModelProto& model = *file.message();
  Page page;
  page.title = concat(path, ": ONNX, ", model.graph().node_size(), " nodes, ",
                      model.graph().initializer_size(), " weights");
  Page::Section about;
  about.columns = {"metadata", "value"};
  for (const auto& opset : model.opset_import())
    about.rows.push_back({"opset", concat(opset.domain().empty() ? "ai.onnx" : opset.domain(), " ",
                                          opset.version())});
  about.rows.push_back({"IR version", std::to_string(model.ir_version())});
  if (!model.producer_name().empty())
    about.rows.push_back(
        {"producer", concat(model.producer_name(), " ", model.producer_version())});
  for (const auto& entry : model.metadata_props())
    about.rows.push_back({entry.key(), entry.value()});
  for (const auto& function : model.functions())
    about.rows.push_back({"function", concat(function.domain(), ".", function.name())});
  page.sections.push_back(std::move(about));
  Page::Section ports;
  ports.columns = {"", "name", "type"};
  for (const auto& value : model.graph().input())
    ports.rows.push_back({"input", value.name(), type_text(value.type())});
  for (const auto& value : model.graph().output())
    ports.rows.push_back({"output", value.name(), type_text(value.type())});
  page.sections.push_back(std::move(ports));
  std::map<std::string, std::size_t> counts;
  count(model.graph(), counts);
  for (const auto& function : model.functions()) {
    for (const auto& node : function.node()) ++counts[node.op_type()];
  }
  std::vector<std::pair<std::string, std::size_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::greater<>(), &std::pair<std::string, std::size_t>::second);
  Page::Section ops;
  ops.columns = {"operator", ">nodes"};
  for (const auto& [name, number] : sorted) ops.rows.push_back({name, std::to_string(number)});
  page.sections.push_back(std::move(ops));
  return page;
}

}  // namespace tenon::frontends::onnx
