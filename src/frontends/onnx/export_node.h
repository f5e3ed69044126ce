#pragma once

#include "ir/graph.h"
#include "tenon/builder.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::onnx {

class Exporter;

/// A body to write as a subgraph. Its last inputs are not written: inside, they are the outer
/// values that `captured` names.
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

/// One Tenon node on its way into an ONNX graph: what an export rule talks to.
class NodeExport {
 public:
  NodeExport(Exporter& exporter, const Graph& graph, NodeId node);

  const Graph& graph;
  const Node& node;
  /// The opset being written. When none was asked for, this grows to the largest one needed.
  int opset() const;
  /// Says that what is written next exists since this opset (and not before). Throws Error
  /// (Unsupported) if an older one was asked for.
  void need_opset(int version);

  /// The ONNX name of an operand; "" where it is missing.
  std::string operand(std::string_view name) const;
  /// all by position
  std::vector<std::string> operands() const;
  bool has(std::string_view operand) const;
  const Type& operand_type(std::string_view name) const;
  const Type& result_type(std::size_t position = 0) const;
  /// "" where it is not wanted
  std::string result(std::size_t position = 0) const;
  std::vector<std::string> results() const;

  /// Attributes with their defaults filled in from the op's definition.
  /// set, or has a default
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
  /// An ONNX input holding a dynamic or symbolic integer-list attribute: the dynamic operand if the
  /// node has one, an initializer if all are numbers, otherwise computed from Shape nodes of graph
  /// inputs.
  std::string integers_input(std::string_view attr);
  /// Of one integer: a scalar, or a list of one.
  std::string integer_input(std::string_view attr, bool as_list = false);
  /// "" for none
  std::string reals_input(std::string_view attr);

  /// An initializer; gives its name.
  std::string constant(const Tensor& value, std::string_view hint = "const");
  std::string integers_constant(const std::vector<std::int64_t>& values) {
    return constant(Tensor::of_integers(values), "shape");
  }
  /// A name for a value between emitted nodes.
  std::string fresh(std::string_view hint);
  void emit(std::string op_type, std::vector<std::string> inputs, std::vector<std::string> outputs,
            std::vector<OnnxAttr> attrs = {}, std::string domain = "");
  /// emit() with one fresh output, whose name it gives.
  std::string emit_value(std::string op_type, std::vector<std::string> inputs,
                         std::vector<OnnxAttr> attrs = {});

 private:
  const AttrValue& attr(std::string_view name) const;

  Exporter& exporter_;
};

/// TensorProto.DataType number of a dtype.
int onnx_element_type(DType dtype);

/// A flag of the node as ONNX has it: 0 or 1.
inline OnnxAttr flag_attr(const NodeExport& node, std::string_view from, const char* to) {
  return {to, std::int64_t{node.flag(from)}};
}

struct ExportRule {
  /// Tenon op
  std::string_view op;
  void (*write)(NodeExport&);
};
/// One list for each file of the same name, like the import handlers.
std::span<const ExportRule> elementwise_export_rules();    // export_elementwise.cpp
std::span<const ExportRule> shape_export_rules();          // export_shape.cpp
std::span<const ExportRule> contraction_export_rules();    // export_contraction.cpp
std::span<const ExportRule> reduction_export_rules();      // export_reduction.cpp
std::span<const ExportRule> normalization_export_rules();  // export_normalization.cpp
std::span<const ExportRule> control_export_rules();        // export_control.cpp
const ExportRule* find_export_rule(std::string_view op);

}  // namespace tenon::onnx
