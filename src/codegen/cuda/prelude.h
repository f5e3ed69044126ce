#pragma once

#include <string_view>

namespace tenon::codegen::cuda {

/// Common first part of every generated source: number formats, arithmetic with the reference's
/// wrap-around semantics, reductions over a group of threads. Plain C++ except for the exchange
/// between threads, so that `device_emulation()` runs the same text on the processor.
std::string_view prelude();

/// Replacement for the CUDA builtins on the processor: runs blocks and threads sequentially,
/// including barriers. Its entry point `tenon_launch` runs one kernel.
std::string_view device_emulation();

}  // namespace tenon::codegen::cuda
