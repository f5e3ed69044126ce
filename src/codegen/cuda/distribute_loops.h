#pragma once

#include "codegen/nest_names.h"

namespace tenon::codegen::cuda {

/// Loop distribution: splits sibling loops inside a short outer loop into nests of their own. Then
/// each thread takes one position instead of each block one iteration of the outer loop. Splits
/// independent siblings, e.g. two results in different layouts, and siblings that exchange data
/// through global buffers if an iteration is long, e.g. an image and its mean over all positions.
void distribute_loops(NestSequence& sequence);

}  // namespace tenon::codegen::cuda
