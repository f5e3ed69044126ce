#pragma once

#include <string_view>

namespace tenon::codegen::cuda {

/// CUDA C++ of the epilogue's vectors of eight elements: vector loads and stores, and the shuffles
/// that turn accumulator fragments into eight neighbours per thread.
std::string_view epilogue_template();

}  // namespace tenon::codegen::cuda
