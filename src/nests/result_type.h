#pragma once

#include "ops/expr.h"

namespace tenon::nests {

/// Returns the default result type of an operator: that of its (first) operand, or bool.
inline DType result_type(UnaryOp op, DType operand) {
  const bool tells =
      op == UnaryOp::IsNan || op == UnaryOp::IsPositiveInf || op == UnaryOp::IsNegativeInf;
  return tells ? DType::Bool : operand;
}
inline DType result_type(BinaryOp op, DType operand) {
  const bool tells = op == BinaryOp::Equal || op == BinaryOp::Less || op == BinaryOp::LessEqual;
  return tells ? DType::Bool : operand;
}

}  // namespace tenon::nests
