#pragma once

#include "frontends/onnx/import_node.h"

namespace tenon::onnx {

/// [batch, length, heads * size] as [batch, heads, length, size]; rank 4 passes as it is.
Var split_heads(NodeImport& node, Var x, std::int64_t heads);
/// The way back.
Var merge_heads(NodeImport& node, Var x);
/// 0, 1, … up to an extent of a value, as i64.
Var positions_along(NodeImport& node, Var value, std::size_t axis);

}  // namespace tenon::onnx
