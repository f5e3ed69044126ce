#pragma once

#include <string_view>

namespace tenon::codegen::cuda {

/// What kernels on tensor cores have in common: narrow formats, fragments of mma.m16n8k16, copies
/// that are made ahead.
std::string_view fragment_template();

}  // namespace tenon::codegen::cuda
