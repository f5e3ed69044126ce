#pragma once

#include "ops/expr.h"

#include <functional>
#include <optional>

namespace tenon {

/// What can be said of the elements of a tensor. NaN may be among them.
struct Signs {
  /// none is below zero; a negative zero may be there
  bool is_never_negative = false;
  /// none is a negative zero
  bool is_never_minus_zero = false;
};

/// What is known of an op's operands.
struct OperandSigns {
  std::function<Signs(std::size_t operand)> signs;
  /// that all elements are
  std::function<std::optional<double>(std::size_t operand)> number;
  /// both are one value
  std::function<bool(std::size_t a, std::size_t b)> is_same;
};

/// What follows for an expression from what it computes.
Signs signs_of(const Expr& expr, const OperandSigns& operands);

}  // namespace tenon
