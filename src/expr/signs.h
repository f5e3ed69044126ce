#pragma once

#include "expr/expr.h"

#include <functional>
#include <optional>

namespace tenon::inline expr {

/// Sign facts of a tensor's elements. NaN may occur among them.
struct Signs {
  /// Elements are never below zero; a negative zero may occur.
  bool is_never_negative = false;
  /// A negative zero never occurs.
  bool is_never_minus_zero = false;
};

/// Facts about an op's operands.
struct OperandSigns {
  std::function<Signs(std::size_t operand)> signs;
  /// The value of a splat operand.
  std::function<std::optional<double>(std::size_t operand)> number;
  /// Both operands are one value.
  std::function<bool(std::size_t a, std::size_t b)> is_same;
};

/// Derives sign facts of an expression from those of its operands.
Signs signs_of(const Expr& expr, const OperandSigns& operands);

}  // namespace tenon::inline expr
