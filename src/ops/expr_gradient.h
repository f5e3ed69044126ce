#pragma once

#include "ops/expr.h"

#include <vector>

namespace tenon {

/// The gradient by one operand, where `flows` (defined or not, of the expressions' types) are the
/// gradients by what the expressions give: the expressions walked backwards, node by node. Integers
/// carry no gradient. Undefined where nothing flows to the operand. Throws Error (Unsupported) for
/// kinds of node that have no rule.
Expr expr_gradient(const std::vector<Expr>& exprs, const std::vector<Expr>& flows,
                   std::size_t operand);

}  // namespace tenon
