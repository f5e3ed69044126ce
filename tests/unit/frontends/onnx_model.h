#pragma once

#include "base/error.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/schema/onnx.pb.h"
#include "ir/text.h"

#include <span>
#include <string>
#include <vector>

// Small models for the tests of the importer and exporter.
namespace tenon::frontends::onnx::testing_models {

using onnx_schema::GraphProto;
using onnx_schema::ModelProto;
using onnx_schema::NodeProto;
using onnx_schema::TensorProto;

inline ModelProto new_model(int opset = 17) {
  ModelProto model;
  model.set_ir_version(8);
  model.mutable_graph()->set_name("g");
  model.add_opset_import()->set_version(opset);
  return model;
}

/// Extents as texts: numbers, names, or "" for unknown.
inline void set_type(onnx_schema::ValueInfoProto& value, const std::string& name,
                     const std::vector<std::string>& dims, int element = TensorProto::FLOAT) {
  value.set_name(name);
  auto& tensor = *value.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(element);
  tensor.mutable_shape();
  for (const std::string& dim : dims) {
    auto& written = *tensor.mutable_shape()->add_dim();
    if (dim.empty()) continue;
    if (dim[0] >= '0' && dim[0] <= '9') {
      written.set_dim_value(std::stoll(dim));
    } else {
      written.set_dim_param(dim);
    }
  }
}

inline void add_input(GraphProto& graph, const std::string& name,
                      const std::vector<std::string>& dims, int element = TensorProto::FLOAT) {
  set_type(*graph.add_input(), name, dims, element);
}
inline void add_output(GraphProto& graph, const std::string& name) {
  graph.add_output()->set_name(name);
}

inline TensorProto floats(const std::string& name, const std::vector<float>& values) {
  TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(TensorProto::FLOAT);
  tensor.add_dims(static_cast<std::int64_t>(values.size()));
  tensor.mutable_float_data()->Assign(values.begin(), values.end());
  return tensor;
}

template <class Owner>
NodeProto& add_node(Owner& owner, const std::string& op_type,
                    const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                    const std::string& name = "") {
  NodeProto& node = *owner.add_node();
  node.set_op_type(op_type);
  node.set_name(name);
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  return node;
}

inline onnx_schema::AttributeProto& add_float(NodeProto& node, const std::string& name,
                                              float value) {
  auto& attr = *node.add_attribute();
  attr.set_name(name);
  attr.set_type(onnx_schema::AttributeProto::FLOAT);
  attr.set_f(value);
  return attr;
}

inline void add_integer(NodeProto& node, const std::string& name, std::int64_t value) {
  auto& attr = *node.add_attribute();
  attr.set_name(name);
  attr.set_type(onnx_schema::AttributeProto::INT);
  attr.set_i(value);
}
inline void add_text(NodeProto& node, const std::string& name, const std::string& value) {
  auto& attr = *node.add_attribute();
  attr.set_name(name);
  attr.set_type(onnx_schema::AttributeProto::STRING);
  attr.set_s(value);
}

inline Graph import_model(const ModelProto& model, std::vector<std::string>* warnings = nullptr) {
  const std::string bytes = model.SerializeAsString();
  return import_onnx(std::as_bytes(std::span(bytes)), {}, "m.onnx", warnings);
}

/// The warnings of the import, one per line.
inline std::string warnings_of(const ModelProto& model) {
  std::vector<std::string> warnings;
  import_model(model, &warnings);
  std::string text;
  for (const std::string& warning : warnings) text += (text.empty() ? "" : "\n") + warning;
  return text;
}

/// The text of the imported graph, or the error's.
inline std::string imported(const ModelProto& model) {
  try {
    Graph graph = import_model(model);
    graph.metadata.clear();
    return print(graph);
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace tenon::frontends::onnx::testing_models
