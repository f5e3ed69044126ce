#pragma once

#include <string_view>

namespace tenon::codegen::cuda {

/// What every generated source begins with: number formats, arithmetic that wraps as the
/// reference's does, folds over the threads of a group. Plain C++ but for the exchange between
/// threads, so that `device_emulation()` runs the same text on the processor.
std::string_view prelude();

/// Takes the place of what a CUDA compiler brings along: blocks and threads one after another on
/// the processor, barriers included. Its entry point runs one kernel: `tenon_launch`.
std::string_view device_emulation();

}  // namespace tenon::codegen::cuda
