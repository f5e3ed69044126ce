#pragma once

#include "expr/expr.h"

// Preconditions of expressions on extents, checked where they are constant. Ops state their rules
// in `infer`; these checks catch a missing rule before it becomes an out-of-bounds access.
namespace tenon::inline expr {

/// Throws Error if a coordinate that is affine in the positions leaves the source.
void require_inside(const Expr& source, const std::vector<Expr>& coordinates,
                    const Dims& positions);
/// Throws Error if the number of elements changes.
void require_same_count(const Dims& before, const Dims& after);
/// Throws Error if the coordinates' shape differs from the updates'.
void require_positions(const std::vector<Expr>& coordinates, const Dims& updates);

}  // namespace tenon::inline expr
