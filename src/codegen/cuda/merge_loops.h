#pragma once

#include "codegen/nest_names.h"

namespace tenon::codegen::cuda {

/// Loop fusion: merges neighbouring independent loops over the same positions. The second takes
/// values from registers that it would read back from memory.
void merge_neighbouring_loops(LoopNest& nest);

}  // namespace tenon::codegen::cuda
