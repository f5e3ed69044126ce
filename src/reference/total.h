#pragma once

#include "ops/expr.h"

namespace tenon::reference {

/// The same expressions where no element fails: `stand_in` is what an index outside its tensor
/// reads and what an integer divided by zero gives. Updates that scatter outside still fail.
std::vector<Expr> made_total(const std::vector<Expr>& exprs, double stand_in);

}  // namespace tenon::reference
