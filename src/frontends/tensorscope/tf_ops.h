#pragma once

#include "ir/graph.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::tensorscope {

/// What an operator of TensorFlow does to the shapes and the flow, as far as tables need it.
enum class OpClass : std::uint8_t {
  Source,       ///< constants, variables, placeholders: reads nothing
  Same,         ///< one result of the shape of the first input
  Contraction,  ///< sums products: the first op of a layer's scope
  Shrinking,    ///< pools
  Gradient,     ///< stands in a scope `gradients/F_grad`
  Other,
};

/// What Tenon's operator says of TensorFlow's.
enum class OpUse : std::uint8_t {
  Both,     ///< they read the same tensors
  Read,     ///< the same, but Tenon's is written under another name
  Written,  ///< Tenon's is written as it, and reads other tensors
};

struct OpInfo {
  std::string_view name;
  OpClass op_class = OpClass::Other;
  int inputs = 1;            ///< of data; -1: any number
  std::string_view op = "";  ///< Tenon's; empty where there is none
  OpUse use = OpUse::Both;
  int outputs = 1;  ///< -1: what is left
};
/// Null for an operator that is not known.
const OpInfo* find_tf_op(std::string_view name);
/// TensorFlow's name for what a node does; one made from Tenon's where it has none.
std::string tf_op_name(const Graph& graph, NodeId id);

}  // namespace tenon::tensorscope
