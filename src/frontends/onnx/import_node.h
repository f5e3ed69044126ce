#pragma once

#include "ir/graph.h"
#include "tenon/builder.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace onnx_schema {
class NodeProto;
class AttributeProto;
}  // namespace onnx_schema

namespace tenon::frontends::onnx {

class OnnxImporter;
struct BoundAttr;

/// Import of one ONNX node: the interface of import handlers. A handler reads inputs and
/// attributes, appends Tenon nodes through `build` (or `call`), and defines the outputs.
class NodeImport {
 public:
  NodeImport(OnnxImporter& importer, const onnx_schema::NodeProto& node, int opset,
             Builder& builder);

  std::string_view op_type() const;
  /// of the node's domain, as the model imports it
  int opset() const { return opset_; }
  Builder& build;

  /// without trailing empty names
  std::size_t input_count() const;
  /// Throws Error for inputs that the handler has not read: the operator does not have them.
  void refuse_further_inputs() const;
  /// Declares an input that the operator has, but that does not affect the result.
  void ignore_input(std::size_t index) const { input_or_none(index); }
  bool has_input(std::size_t index) const;
  /// throws Error if it is missing
  Var input(std::size_t index) const;
  /// an invalid Var if it is missing
  Var input_or_none(std::size_t index) const;
  /// all of them; missing ones are invalid
  std::vector<Var> inputs() const;
  /// Returns the input's elements if they are constant in the model.
  std::optional<Tensor> constant_input(std::size_t index) const;
  const Type& type(Var value) const { return build.type(value); }
  const std::string& name_of(Var value) const {
    return build.graph().value(ValueId(value.id())).name;
  }
  /// throws Error if the type is not known
  DType dtype(Var value) const;
  /// Returns the extents; reports the node as unsupported if the rank is unknown.
  Dims dims(Var value) const;
  /// Returns the value with these extents stated, if its type is not known.
  Var with_extents(Var value, DType dtype, Dims dims);
  /// Returns the rank if it is known.
  std::optional<std::size_t> rank(Var value) const;

  std::size_t output_count() const;
  /// it has a nonempty name
  bool wants_output(std::size_t index) const;
  const std::string& output_name(std::size_t index) const;

  bool has_attr(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise = 0) const;
  double real(std::string_view name, double otherwise = 0) const;
  std::string text(std::string_view name, std::string otherwise = "") const;
  std::vector<std::int64_t> integers(std::string_view name,
                                     std::vector<std::int64_t> otherwise = {}) const;
  std::vector<double> reals(std::string_view name, std::vector<double> otherwise = {}) const;
  std::vector<std::string> texts(std::string_view name) const;
  Tensor tensor(std::string_view name) const;
  /// Reads a TensorProto.DataType attribute as a dtype.
  DType element(std::string_view name, DType otherwise) const;
  /// Reads a TypeProto attribute; Unknown if it is missing.
  Type type_attr(std::string_view name) const;

  /// A subgraph attribute as a body graph. Captured outer values become additional inputs after the
  /// body's own, and are appended to `captured` in that order (each once; with the same list for
  /// all bodies of a node, every body gets the whole list as inputs).
  struct Bodies {
    std::vector<Graph> graphs;
    std::vector<Var> captured;
  };
  /// `input_types` are the types of each body's own inputs if known (Unknown: as declared).
  Bodies bodies(const std::vector<std::string>& attr_names,
                const std::vector<std::vector<Type>>& input_types) const;
  /// Appends the nodes of a subgraph attribute for these inputs to this graph; returns its outputs.
  std::vector<Var> inlined_body(const std::string& attr_name, const std::vector<Var>& inputs) const;

  Var call(std::string_view op, const std::vector<Var>& operands,
           const std::vector<Attr>& attrs = {}) {
    return build.call(op, operands, attrs);
  }
  /// Declares the node's outputs, by position. A value that this node created takes the output's
  /// ONNX name; a value that passes through keeps its own.
  void output(Var value) { output(0, value); }
  void output(std::size_t index, Var value);
  void outputs(const std::vector<Var>& values);
  /// Returns output names for call_all: the ONNX names of the first `count` outputs, "_" for unused
  /// ones.
  std::vector<std::string> output_names(std::size_t count) const;

  /// Aborts the import of this node and adds it to the list of unsupported operators.
  [[noreturn]] void unsupported(std::string reason) const;

 private:
  const onnx_schema::AttributeProto* find_attr(std::string_view name) const;
  BoundAttr body_attr(const std::string& name) const;

  OnnxImporter& importer_;
  const onnx_schema::NodeProto& node_;
  int opset_;
  std::uint32_t first_new_value_;
  /// one more than the largest position that was read
  mutable std::size_t asked_inputs_ = 0;
};

inline constexpr std::string_view kTraining = "ai.onnx.preview.training";

struct Handler {
  std::string_view op_type;
  void (*import)(NodeImport&);
  /// "" is ai.onnx
  std::string_view domain = "";
};

/// Handlers per source file of the same name; `all_handlers` joins them.
std::span<const Handler> elementwise_handlers();          // import_elementwise.cpp
std::span<const Handler> quantize_handlers();             // import_quantize.cpp
std::span<const Handler> shape_handlers();                // import_shape.cpp
std::span<const Handler> indexing_handlers();             // import_indexing.cpp
std::span<const Handler> contraction_handlers();          // import_contraction.cpp
std::span<const Handler> pooling_handlers();              // import_pooling.cpp
std::span<const Handler> normalization_handlers();        // import_normalization.cpp
std::span<const Handler> attention_handlers();            // import_attention.cpp
std::span<const Handler> recurrent_handlers();            // import_recurrent.cpp
std::span<const Handler> control_handlers();              // import_control.cpp
std::span<const Handler> sequence_handlers();             // import_sequence.cpp
std::span<const Handler> text_handlers();                 // import_text.cpp
std::span<const Handler> random_handlers();               // import_random.cpp
std::span<const Handler> signal_handlers();               // import_signal.cpp
std::span<const Handler> training_handlers();             // import_training.cpp
std::span<const Handler> ml_handlers();                   // import_ml.cpp
std::span<const Handler> tree_handlers();                 // import_trees.cpp
std::span<const Handler> svm_handlers();                  // import_svm.cpp
std::span<const Handler> microsoft_handlers();            // import_microsoft.cpp
std::span<const Handler> microsoft_attention_handlers();  // import_microsoft_attention.cpp
std::span<const Handler> microsoft_quantized_handlers();  // import_microsoft_quantized.cpp
const Handler* find_handler(std::string_view domain, std::string_view op_type);

}  // namespace tenon::frontends::onnx
