#pragma once

#include "frontends/onnx/import_node.h"

namespace tenon::frontends::onnx {

/// Transposes [batch, length, heads * size] to [batch, heads, length, size]; rank 4 passes
/// unchanged.
Var split_heads(NodeImport& node, Var x, std::int64_t heads);
/// The inverse of `split_heads`.
Var merge_heads(NodeImport& node, Var x);
/// Returns 1 / sqrt(extent / heads) of an axis as a scalar, for an extent known at run time.
Var inverse_root(NodeImport& node, Var x, std::int64_t axis, std::int64_t heads, DType dtype);
/// Returns 0, 1, … up to an extent of a value, as i64.
Var positions_along(NodeImport& node, Var value, std::size_t axis);

}  // namespace tenon::frontends::onnx
