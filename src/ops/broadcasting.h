#pragma once

#include "ops/expr.h"

namespace tenon {

/// Where an axis of extent `own` is read as it is broadcast to one of extent `whole`: at `index`,
/// at 0 if it is 1, and, where only the run tells, at a multiple of `index` that is one or the
/// other.
Expr broadcast_index(const Expr& index, const Dim& own, const Dim& whole);

}  // namespace tenon
