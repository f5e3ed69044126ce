#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tenon::codegen::cuda {

/// Machine code of a device for CUDA C++, by NVIDIA's run-time compiler; no device is needed.
/// `architecture` is such as "sm_90a". Throws Error: of kind Device where there is no compiler.
std::vector<std::byte> compile_source(const std::string& source, const std::string& architecture);

/// "NVRTC 13.0". Throws Error (Device) where there is none.
std::string compiler_name();

}  // namespace tenon::codegen::cuda
