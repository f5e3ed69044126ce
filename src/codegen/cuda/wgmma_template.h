#pragma once

#include <string>

namespace tenon::codegen::cuda {

/// CUDA C++ wrappers of wgmma. `Multiply<FORMAT, COLUMNS, IS_B_TURNED>::add(sums, a, b, adds)`
/// multiplies 32 bytes of K of two shared-memory tiles and accumulates into a warpgroup's 64-row
/// tile; it overwrites the accumulators if `adds` is 0. `MultiplyRows` takes A from registers.
std::string wgmma_template(bool has_attention = false);

}  // namespace tenon::codegen::cuda
