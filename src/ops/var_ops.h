#pragma once

#include "ir/type.h"
#include "tenon/builder.h"

namespace tenon {

/// Nodes that gradients and frontends append all the time; nothing is appended where nothing would
/// change. The types must be known.
/// Repeats `value` to `shape` along axes of extent 1 and new leading ones.
Var expand_to(Var value, const Dims& shape);
/// The same elements in row-major order under `shape`.
Var reshape_to(Var value, const Dims& shape);
Var cast_to(Var value, DType dtype);
/// Sums `value` down to `shape` over the axes that broadcasting repeated.
Var sum_to_shape(Var value, const Dims& shape);

}  // namespace tenon
