#pragma once

#include <string_view>

namespace tenon::codegen::cuda {

/// CUDA C++ of kernels whose operands arrive by TMA: tensor maps, mbarriers, bulk tensor copies and
/// wgmma matrix descriptors.
std::string_view tma_template();

/// Emulation of those instructions on the processor: TMA copies, mbarriers, clusters and wgmma
/// accumulators with the semantics of a device.
std::string_view tma_emulation();

}  // namespace tenon::codegen::cuda
