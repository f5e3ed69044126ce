#pragma once

#include "codegen/nest_names.h"

namespace tenon::codegen::cuda {

/// Makes nests of their own of loops that stand side by side in a few turns of others and know
/// nothing of each other, as two results laid out in different orders: then every position is a
/// thread's, not every turn a block's.
void distribute_loops(NestSequence& sequence);

}  // namespace tenon::codegen::cuda
