#pragma once

#include "ir/graph.h"
#include "passes/train/train.h"

namespace tenon::passes {

/// Returns the model with the loss as its only output, with an input `target` whose class numbers
/// have type `labels`. The kind "l2" is half the sum of squares of the output, without a target.
Graph with_loss(Graph model, const LossOptions& options, DType labels);

}  // namespace tenon::passes
