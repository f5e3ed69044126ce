#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tenon::codegen::cuda {

/// Compiles CUDA C++ to machine code with NVRTC; works without a device. `architecture` is e.g.
/// "sm_90a". Throws Error of kind Device if NVRTC is missing.
std::vector<std::byte> compile_source(const std::string& source, const std::string& architecture);

/// Returns e.g. "NVRTC 13.0". Throws Error (Device) if NVRTC is missing.
std::string compiler_name();

}  // namespace tenon::codegen::cuda
