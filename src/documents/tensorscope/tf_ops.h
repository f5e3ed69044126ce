#pragma once

#include "ir/graph.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::documents::tensorscope {

/// Class of a TensorFlow operator: its effect on shapes and data flow, as far as tables need it.
enum class OpClass : std::uint8_t {
  /// constants, variables, placeholders: without operands
  Source,
  /// one result of the shape of the first input
  Same,
  /// contractions: the first op of a layer's scope
  Contraction,
  /// pools
  Shrinking,
  /// in a scope `gradients/F_grad`
  Gradient,
  Other,
};

/// Relation between Tenon's operator and TensorFlow's.
enum class OpUse : std::uint8_t {
  /// equal operands
  Both,
  /// equal operands, but Tenon's is exported under another name
  Read,
  /// Tenon's is exported as this one, with other operands
  Written,
};

struct OpInfo {
  std::string_view name;
  OpClass op_class = OpClass::Other;
  /// of data; -1: any number
  int inputs = 1;
  /// Tenon's; empty without an equivalent
  std::string_view op = "";
  OpUse use = OpUse::Both;
  /// -1: the remaining ones
  int outputs = 1;
};
/// Returns null for an unknown operator.
const OpInfo* find_tf_op(std::string_view name);
/// Returns TensorFlow's operator name for a node; derived from Tenon's name if it lacks one.
std::string tf_op_name(const Graph& graph, NodeId id);

}  // namespace tenon::documents::tensorscope
