#pragma once

#include "nests/loop_nest.h"

#include <string>
#include <vector>

namespace tenon::nests {

/// The loop nests that compute some expressions, one after another.
struct NestSequence {
  enum class BufferRole : std::uint8_t { Operand, Result, Temporary, Derived };
  struct Buffer {
    BufferRole role = BufferRole::Operand;
    /// which operand, result or constant derived from one
    std::size_t index = 0;
    DType dtype = DType::F32;
    Dims dims;
  };
  struct Part {
    LoopNest nest;
    /// for each buffer of the nest that is not scratch, in order
    std::vector<std::size_t> buffers;
    /// its loops already say how they run
    bool is_scheduled = false;
  };
  std::vector<Buffer> buffers;
  std::vector<Part> parts;
};

/// Derives the nests. Reductions, scans and scatters are stages of their own; stages that share
/// their outer loops become one nest, and what flows between them one small buffer per thread.
/// There are none for tensors without elements.
/// Throws Error of kind Unsupported for element types that kernels do not compute with.
NestSequence build_nests(const std::string& name, const std::vector<Expr>& results);

/// Whether kernels compute with this element type.
bool is_compilable(DType dtype);

}  // namespace tenon::nests
