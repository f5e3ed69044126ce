#pragma once

#include "ops/expr.h"

// What an expression promises about extents, held wherever numbers tell: ops state their rules in
// `infer`, and what one of them forgot ends here rather than beside a tensor's elements.
namespace tenon {

/// Throws Error where a coordinate that grows evenly with positions leaves the source.
void require_inside(const Expr& source, const std::vector<Expr>& coordinates,
                    const Dims& positions);
/// Throws Error where the number of elements changes.
void require_same_count(const Dims& before, const Dims& after);
/// Throws Error where coordinates have other positions than the updates.
void require_positions(const std::vector<Expr>& coordinates, const Dims& updates);

}  // namespace tenon
