#pragma once

#include "ops/lowering.h"
#include "ops/operand_types.h"

#include <string_view>

namespace tenon {

/// What optimisers share. Operands "rate" and "step" are one number each; "x", "gradient" and the
/// optimiser's own state have one type, which the results have too.
/// Throws Error, naming the op, unless the operands fit; gives the type of each of `result_count`
/// results.
std::vector<Type> optimizer_types(const OperandTypes& in,
                                  const std::vector<std::string_view>& state,
                                  std::size_t result_count);

/// The operand, one number, in the element type of x.
Expr optimizer_number(const Lowering& op, std::string_view operand);
/// The gradient with that of `decay/2·|x|²` added.
Expr regularised_gradient(const Lowering& op, double decay);

}  // namespace tenon
