#pragma once

#include "ir/op_def.h"

#include <optional>

namespace tenon::inline ir {

/// Infers a node whose extents, or their product, exceed the size limit of expressions: replaces
/// its operands' extents by short symbols, and makes every non-constant extent of its results a
/// data-dependent symbol (`?0`, …) with its range. Returns nullopt if no result has such an extent,
/// because its constraints would then stay unchecked.
std::optional<InferOutput> infer_symbolic(const OpDef& op, const InferInput& input);

}  // namespace tenon::inline ir
