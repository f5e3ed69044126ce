#pragma once

#include "ops/expr.h"

namespace tenon {

/// Whether the expression is taken element by element, and an operand times a number above zero
/// gives the result times that number: f(s x) = s f(x).
bool is_homogeneous(const Expr& expr, std::size_t operand);

}  // namespace tenon
