#pragma once

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

struct OpInfo {
  std::string_view name;
  OpClass op_class = OpClass::Other;
  int inputs = 1;   ///< of data; -1: any number
  int outputs = 1;  ///< -1: what is left
};
/// Null for an operator that is not known.
const OpInfo* find_tf_op(std::string_view name);

}  // namespace tenon::tensorscope
