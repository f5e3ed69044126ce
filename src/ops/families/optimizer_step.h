#pragma once

#include "expr/lowering.h"
#include "ops/definition/operand_types.h"

#include <string_view>

namespace tenon::inline ops {

/// Shared parts of optimizers. Operands "rate" and "step" are one number each; "x", "gradient" and
/// the optimizer state have one type, which the results have too.
///
/// Returns the type of each of `result_count` results. Throws Error, naming the op, unless the
/// operands fit.
std::vector<Type> optimizer_types(const OperandTypes& in,
                                  const std::vector<std::string_view>& state,
                                  std::size_t result_count);

/// Returns a one-element operand, converted to the element type of x.
Expr optimizer_number(const Lowering& op, std::string_view operand);
/// Returns the gradient plus weight decay, the gradient of `decay/2·|x|²`.
Expr regularised_gradient(const Lowering& op, double decay);

}  // namespace tenon::inline ops
