#pragma once

#include <string_view>

namespace tenon::codegen::cuda {

/// CUDA C++ of eight neighbours, that a thread computes what follows sums of: how they are read and
/// written, and how threads that have fragments of sums come by them.
std::string_view eight_template();

}  // namespace tenon::codegen::cuda
