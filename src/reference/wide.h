#pragma once

#include "ops/expr.h"

namespace tenon::reference {

/// The same expressions with f32 computed in f64 and rounded once, at the end. What reads no
/// operand, such as the positions that a resize samples at, stays as it is: it does not depend on
/// data, so everybody computes the same.
std::vector<Expr> computed_wide(const std::vector<Expr>& exprs);

}  // namespace tenon::reference
