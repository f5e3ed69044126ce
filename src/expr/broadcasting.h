#pragma once

#include "expr/expr.h"

namespace tenon::inline expr {

/// Returns the coordinate that broadcasting an axis of extent `own` to `whole` reads: `index`, or 0
/// if `own` is 1. If only the run decides, it is `index` times a factor that is 0 or 1.
Expr broadcast_index(const Expr& index, const Dim& own, const Dim& whole);

}  // namespace tenon::inline expr
