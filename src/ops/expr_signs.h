#pragma once

#include "ops/expr.h"

#include <functional>
#include <optional>

namespace tenon {

/// What can be said of the elements of a tensor. NaN may be among them.
struct Signs {
  bool is_never_negative = false;    ///< none is below zero; a negative zero may be there
  bool is_never_minus_zero = false;  ///< none is a negative zero
};

/// What is known of an op's operands.
struct OperandSigns {
  std::function<Signs(std::size_t operand)> signs;
  std::function<std::optional<double>(std::size_t operand)> number;  ///< that all elements are
  std::function<bool(std::size_t a, std::size_t b)> is_same;         ///< both are one value
};

/// What follows for an expression from what it computes.
Signs signs_of(const Expr& expr, const OperandSigns& operands);

}  // namespace tenon
