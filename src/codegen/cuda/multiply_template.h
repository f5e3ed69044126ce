#pragma once

#include <string>

namespace tenon::codegen::cuda {

/// CUDA C++: `Multiply<FORMAT, COLUMNS, IS_B_TURNED>::add(sums, a, b, adds)` adds to a group's tile
/// of 64 rows the products of 32 bytes of each row of two tiles in shared memory (wgmma), or begins
/// anew where `adds` is 0; `MultiplyRows` has the first tile in registers.
std::string multiply_template();

}  // namespace tenon::codegen::cuda
