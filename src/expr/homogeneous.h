#pragma once

#include "expr/expr.h"

namespace tenon::inline expr {

/// Returns whether the expression is elementwise and homogeneous of degree 1 for positive factors:
/// f(s x) = s f(x), s > 0.
bool is_homogeneous(const Expr& expr, std::size_t operand);

}  // namespace tenon::inline expr
