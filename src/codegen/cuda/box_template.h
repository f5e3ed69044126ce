#pragma once

#include <string_view>

namespace tenon::codegen::cuda {

/// CUDA C++ of kernels whose operands come in boxes by tensor maps: barriers, copies, and how wgmma
/// is told where a tile lies.
std::string_view box_template();

}  // namespace tenon::codegen::cuda
