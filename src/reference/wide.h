#pragma once

#include "expr/expr.h"

namespace tenon::reference {

/// Rewrites f32 expressions to f64 with one rounding at the end. Expressions without operands, such
/// as the sample positions of a resize, are unchanged: they do not depend on data, so every
/// implementation computes the same values.
std::vector<Expr> computed_wide(const std::vector<Expr>& exprs);

}  // namespace tenon::reference
