#pragma once

#include "codegen/nest_names.h"

namespace tenon::codegen::cuda {

/// Makes one loop of neighbouring independent loops over the same positions. What the second would
/// read back from memory it takes as the first computed it.
void merge_neighbouring_loops(LoopNest& nest);

}  // namespace tenon::codegen::cuda
