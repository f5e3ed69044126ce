#pragma once

#include "expr/expr.h"

#include <vector>

namespace tenon::inline expr {

/// Reverse-mode derivative of expressions with respect to one operand; `flows` (possibly undefined,
/// of the expressions' types) are the gradients of the expressions. Integers carry no gradient.
/// Returns an undefined expression if the operand has no gradient. Throws Error (Unsupported) for
/// node kinds without a rule.
Expr expr_gradient(const std::vector<Expr>& exprs, const std::vector<Expr>& flows,
                   std::size_t operand);

}  // namespace tenon::inline expr
