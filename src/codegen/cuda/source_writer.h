#pragma once

#include "codegen/cuda/binding.h"

#include <string>
#include <vector>

namespace tenon::codegen::cuda {

/// A bound nest to be written as a kernel named `symbol`.
struct BoundNest {
  const LoopNest* nest = nullptr;
  std::string symbol;
  GridBinding binding;
};

/// Writes CUDA C++ for kernels. Parameters: the buffers that are not scratch, the extents, device
/// scratch, and the error report for failed data checks.
std::string write_source(const std::vector<BoundNest>& kernels);

/// Writes the same as C++ for the processor, with a function `emulate_SYMBOL(buffers, extents,
/// scratch, error, blocks)` for each kernel.
std::string write_emulation(const std::vector<BoundNest>& kernels);

}  // namespace tenon::codegen::cuda
