#pragma once

#include "expr/expr.h"

namespace tenon::reference {

/// Makes expressions total: out-of-bounds reads and integer divisions by zero yield
/// `default_value`. Out-of-bounds scatters still fail.
std::vector<Expr> made_total(const std::vector<Expr>& exprs, double default_value);

}  // namespace tenon::reference
