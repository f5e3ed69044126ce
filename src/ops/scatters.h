#pragma once

#include "ops/expr.h"

#include <vector>

namespace tenon {

/// The scatters whose elements an expression goes through one by one, itself among them. Their
/// indices are looked at even where there are no elements: an update that has nowhere to go is
/// wrong all the same. Of what is only read from, here and there, nothing is asked for.
std::vector<Expr> scatters_in(const Expr& expr);

}  // namespace tenon
