#pragma once

#include "ir/graph.h"
#include "passes/train/train.h"

namespace tenon {

/// The model with its loss in place of its outputs: of `target`, whose classes are numbers of type
/// `labels`. Of the kind "l2" it is half the sum of squares of the output, and there is no target.
Graph with_loss(Graph model, const LossOptions& options, DType labels);

}  // namespace tenon
