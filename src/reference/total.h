#pragma once

#include "ops/expr.h"

namespace tenon::reference {

/// Makes expressions total: out-of-bounds reads and integer divisions by zero yield `stand_in`.
/// Out-of-bounds scatters still fail.
std::vector<Expr> made_total(const std::vector<Expr>& exprs, double stand_in);

}  // namespace tenon::reference
