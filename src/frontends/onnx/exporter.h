#pragma once

#include "frontends/onnx/export.h"
#include "frontends/onnx/export_node.h"
#include "frontends/unsupported.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace onnx_schema {
class GraphProto;
class ModelProto;
}  // namespace onnx_schema

namespace tenon::frontends::onnx {

/// An initializer whose elements are written later.
struct ExportedConstant {
  std::string name;
  Constant value;
};

/// State of the export of one graph or body.
struct ExportFrame {
  const Graph* graph = nullptr;
  ExportFrame* outer = nullptr;
  onnx_schema::GraphProto* proto = nullptr;
  /// ONNX names by value id
  std::vector<std::string> names{};
  /// by value id: defined by a node of this graph
  std::vector<bool> is_local{};
  /// symbol -> i64[1] value that holds it
  std::map<std::string, std::string> extents{};
};

/// Writes a graph's nodes by the export rules; weights are collected in `constants`.
class OnnxExporter {
 public:
  OnnxExporter(const Graph& graph, const ExportOptions& options);
  ~OnnxExporter();

  /// Returns the model without initializers. Throws Error (Unsupported) with all nodes that cannot
  /// be written.
  const onnx_schema::ModelProto& run();
  const std::vector<ExportedConstant>& constants() const { return constants_; }

  // Interface for NodeExport.
  int opset() const { return opset_; }
  void need_opset(int version);
  ExportFrame& frame() { return *frame_; }
  std::string fresh(std::string_view hint);
  std::string add_constant(const Constant& value, std::string_view hint);
  void add_node(const std::string& op_type, const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs, const std::vector<OnnxAttr>& attrs,
                const std::string& domain);
  /// Returns the name of an i64[1] value of the extent, computed from shapes of values.
  std::string extent_value(const Dim& extent);

 private:
  void write_model();
  void write_metadata();
  void write_inputs(std::size_t own_count);
  void write_nodes();
  void write_node(NodeId id);
  void write_outputs();
  void write_body(const OnnxBody& body, onnx_schema::GraphProto& proto);
  std::string symbol_value(const std::string& symbol);

  const Graph& graph_;
  ExportOptions options_;
  std::unique_ptr<onnx_schema::ModelProto> model_;
  std::vector<ExportedConstant> constants_;
  std::unordered_set<std::string> used_names_, used_node_names_;
  std::map<std::string, int> other_domains_;
  UnsupportedList unsupported_;
  ExportFrame* frame_ = nullptr;
  /// of the Tenon node in progress
  std::string node_name_;
  int opset_ = 0, needed_opset_ = 0;
};

}  // namespace tenon::frontends::onnx
