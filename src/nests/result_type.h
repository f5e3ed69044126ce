#pragma once

#include "expr/expr.h"

namespace tenon::nests {

/// Returns the default result type of an operator: that of its (first) operand, or bool.
inline DType result_type(UnaryOp op, DType operand) {
  const bool is_predicate =
      op == UnaryOp::IsNan || op == UnaryOp::IsPositiveInf || op == UnaryOp::IsNegativeInf;
  return is_predicate ? DType::Bool : operand;
}
inline DType result_type(BinaryOp op, DType operand) {
  const bool is_predicate =
      op == BinaryOp::Equal || op == BinaryOp::Less || op == BinaryOp::LessEqual;
  return is_predicate ? DType::Bool : operand;
}

}  // namespace tenon::nests
