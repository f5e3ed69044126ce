#pragma once

#include "codegen/cuda/binding.h"

#include <string>
#include <vector>

namespace tenon::codegen::cuda {

/// A nest that becomes a kernel called `symbol`.
struct Kernel {
  const LoopNest* nest = nullptr;
  std::string symbol;
  Binding binding;
};

/// CUDA C++ for kernels. One takes its buffers that are no scratch, then its extents, then memory
/// of its own and where to report what the data does wrong.
std::string write_source(const std::vector<Kernel>& kernels);

/// The same as C++ for the processor, with a function `emulate_SYMBOL(buffers, extents, scratch,
/// error, blocks)` for each.
std::string write_emulation(const std::vector<Kernel>& kernels);

}  // namespace tenon::codegen::cuda
