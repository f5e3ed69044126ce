#pragma once

#include "expr/expr.h"

#include <vector>

namespace tenon::inline ops {

/// Returns the scatters that an expression evaluates elementwise, itself included. Their indices
/// are validated even for empty operands: an update without a valid destination is an error.
/// Scatters that are only read at computed coordinates are not included.
std::vector<Expr> scatters_in(const Expr& expr);

}  // namespace tenon::inline ops
