#pragma once

#include "ir/graph.h"
#include "tenon/builder.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::frontends::onnx {

class OnnxExporter;

/// A body to write as a subgraph. Its last inputs are replaced by the outer values that `captured`
/// names.
struct OnnxBody {
  const Graph* graph = nullptr;
  std::vector<std::string> captured;
};

/// An ONNX attribute to write: the value's C++ type decides the ONNX type.
struct OnnxAttr {
  std::string name;
  std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
               std::vector<std::string>, Tensor, Type, OnnxBody>
      value;
};

/// Export of one Tenon node to an ONNX graph: the interface of export rules.
class NodeExport {
 public:
  NodeExport(OnnxExporter& exporter, const Graph& graph, NodeId node);

  const Graph& graph;
  const Node& node;
  /// The opset of the model. Without a requested one, it grows to the largest one needed.
  int opset() const;
  /// Requires an opset that introduced the following operators. Throws Error (Unsupported) if an
  /// older one was requested.
  void need_opset(int version);

  /// The ONNX name of an operand; "" for a missing one.
  std::string operand(std::string_view name) const;
  /// all by position
  std::vector<std::string> operands() const;
  bool has(std::string_view operand) const;
  const Type& operand_type(std::string_view name) const;
  const Type& result_type(std::size_t position = 0) const;
  /// "" for an unused result
  std::string result(std::size_t position = 0) const;
  std::vector<std::string> results() const;

  /// Attributes with defaults from the op's definition. Returns whether it is set or has a default.
  bool has_attr(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  bool flag(std::string_view name) const;
  double real(std::string_view name) const;
  /// texts and words
  std::string text(std::string_view name) const;
  DType element(std::string_view name) const;
  /// Throws Error (Unsupported) if the list has symbols; see `integers_input`.
  std::vector<std::int64_t> integers(std::string_view name) const;
  std::vector<double> reals(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  /// Returns an ONNX input for a dynamic or symbolic integer-list attribute: the dynamic operand if
  /// the node has one, an initializer if all are numbers, otherwise a value computed by Shape
  /// nodes.
  std::string integers_input(std::string_view attr);
  /// Returns an input for one integer, as a scalar or as a list of one.
  std::string integer_input(std::string_view attr, bool as_list = false);
  /// "" for an empty list
  std::string reals_input(std::string_view attr);

  /// Adds an initializer and returns its name.
  std::string constant(const Tensor& value, std::string_view hint = "const");
  std::string integers_constant(const std::vector<std::int64_t>& values) {
    return constant(Tensor::of_integers(values), "shape");
  }
  /// Returns a new name for an intermediate value.
  std::string fresh(std::string_view hint);
  void emit(std::string op_type, std::vector<std::string> inputs, std::vector<std::string> outputs,
            std::vector<OnnxAttr> attrs = {}, std::string domain = "");
  /// Emits a node with one output and returns the output's name.
  std::string emit_value(std::string op_type, std::vector<std::string> inputs,
                         std::vector<OnnxAttr> attrs = {});

 private:
  const AttrValue& attr(std::string_view name) const;

  OnnxExporter& exporter_;
};

/// TensorProto.DataType number of a dtype.
int onnx_element_type(DType dtype);

/// Returns a flag of the node as ONNX's 0 or 1.
inline OnnxAttr flag_attr(const NodeExport& node, std::string_view from, const char* to) {
  return {to, std::int64_t{node.flag(from)}};
}

struct ExportRule {
  /// Tenon op
  std::string_view op;
  void (*write)(NodeExport&);
};
/// Lists per source file of the same name, like the import handlers.
std::span<const ExportRule> elementwise_export_rules();    // export_elementwise.cpp
std::span<const ExportRule> shape_export_rules();          // export_shape.cpp
std::span<const ExportRule> contraction_export_rules();    // export_contraction.cpp
std::span<const ExportRule> reduction_export_rules();      // export_reduction.cpp
std::span<const ExportRule> normalization_export_rules();  // export_normalization.cpp
std::span<const ExportRule> control_export_rules();        // export_control.cpp
const ExportRule* find_export_rule(std::string_view op);

}  // namespace tenon::frontends::onnx
