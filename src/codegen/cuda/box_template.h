#pragma once

#include <string_view>

namespace tenon::codegen::cuda {

/// CUDA C++ of kernels whose operands come in boxes by tensor maps: barriers, copies, and how wgmma
/// is told where a tile lies.
std::string_view box_template();

/// What stands in for those instructions on the processor: copies, barriers, clusters and sums of
/// tiles as a device has them.
std::string_view box_emulation();

}  // namespace tenon::codegen::cuda
