#pragma once

#include "ir/op_def.h"

#include <optional>

namespace tenon {

/// Infers a node whose extents, or their product, are too large to write down: its operands'
/// extents get short names for the time being, and every extent of its results that is no number is
/// one that only the run tells (`?0`, …), with its range. Nothing where no result has such an
/// extent: then nobody would look at what the node takes for granted.
std::optional<InferOutput> infer_opened(const OpDef& op, const InferInput& input);

}  // namespace tenon
