#pragma once

#include "codegen/nest_names.h"

namespace tenon::codegen::cuda {

/// Loop distribution: splits independent sibling loops inside a short outer loop into nests of
/// their own, e.g. two results in different layouts. Then each thread takes one position instead of
/// each block one iteration of the outer loop.
void distribute_loops(NestSequence& sequence);

}  // namespace tenon::codegen::cuda
