#pragma once

#include <string_view>

namespace tenon::codegen::cuda {

/// CUDA C++ shared by mma.sync kernels: 16-bit formats, m16n8k16 fragments (ldmatrix), and cp.async
/// copies.
std::string_view mma_sync_template();

}  // namespace tenon::codegen::cuda
