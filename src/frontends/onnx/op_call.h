#pragma once

#include "frontends/onnx/import_node.h"
#include "ir/op_def.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::frontends::onnx {

/// Builds a Tenon node from an ONNX node: operands by name, in any order.
class OpCall {
 public:
  OpCall(NodeImport& node, std::string_view op);

  /// An invalid Var omits the operand.
  OpCall& operand(std::string_view name, Var value);
  /// All of them, by position.
  OpCall& operands(std::vector<Var> values);
  OpCall& attr(Attr attr);
  /// Sets a dynamic attribute from an ONNX input: its value if that is constant, else the operand
  /// of the same name. A missing input keeps the default.
  OpCall& dynamic(std::string_view attr_name, std::size_t input);

  Var result() const;
  std::vector<Var> results(std::size_t count) const;

 private:
  NodeImport& node_;
  const OpDef& op_;
  std::vector<Var> operands_;
  std::vector<Attr> attrs_;
};

/// Returns the single element of a constant input; nullopt for other inputs. Throws Error for any
/// other number of elements.
std::optional<std::int64_t> constant_integer(const NodeImport& node, std::size_t input);

}  // namespace tenon::frontends::onnx
