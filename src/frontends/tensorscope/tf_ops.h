#pragma once

#include "ir/graph.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::tensorscope {

/// What an operator of TensorFlow does to the shapes and the flow, as far as tables need it.
enum class OpClass : std::uint8_t {
  /// constants, variables, placeholders: reads nothing
  Source,
  /// one result of the shape of the first input
  Same,
  /// sums products: the first op of a layer's scope
  Contraction,
  /// pools
  Shrinking,
  /// stands in a scope `gradients/F_grad`
  Gradient,
  Other,
};

/// What Tenon's operator says of TensorFlow's.
enum class OpUse : std::uint8_t {
  /// they read the same tensors
  Both,
  /// the same, but Tenon's is written under another name
  Read,
  /// Tenon's is written as it, and reads other tensors
  Written,
};

struct OpInfo {
  std::string_view name;
  OpClass op_class = OpClass::Other;
  /// of data; -1: any number
  int inputs = 1;
  /// Tenon's; empty where there is none
  std::string_view op = "";
  OpUse use = OpUse::Both;
  /// -1: what is left
  int outputs = 1;
};
/// Null for an operator that is not known.
const OpInfo* find_tf_op(std::string_view name);
/// TensorFlow's name for what a node does; one made from Tenon's where it has none.
std::string tf_op_name(const Graph& graph, NodeId id);

}  // namespace tenon::tensorscope
