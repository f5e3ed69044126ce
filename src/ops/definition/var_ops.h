#pragma once

#include "ir/type.h"
#include "tenon/builder.h"

namespace tenon::inline ops {

/// Node builders that append a node only if it changes the value. The types must be known.
///
/// Broadcasts `value` to `shape` along axes of extent 1 and new leading ones.
Var expand_to(Var value, const Dims& shape);
/// Returns the same elements in row-major order with shape `shape`.
Var reshape_to(Var value, const Dims& shape);
Var cast_to(Var value, DType dtype);
/// Sums `value` down to `shape` over the broadcast axes.
Var sum_to_shape(Var value, const Dims& shape);

}  // namespace tenon::inline ops
