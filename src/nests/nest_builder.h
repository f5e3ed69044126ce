#pragma once

#include "nests/loop_nest.h"
#include "nests/packing.h"

#include <string>
#include <vector>

namespace tenon::nests {

/// A sequence of loop nests that compute some expressions.
struct NestSequence {
  enum class BufferRole : std::uint8_t { Operand, Result, Temporary, Derived };
  struct Buffer {
    BufferRole role = BufferRole::Operand;
    /// Index of the operand, result or derived constant.
    std::size_t index = 0;
    DType dtype = DType::F32;
    Dims dims;
  };
  struct NestCall {
    LoopNest nest;
    /// The sequence's buffer for each non-scratch buffer of the nest, in order.
    std::vector<std::size_t> buffers;
    /// Its loops have execution kinds.
    bool is_scheduled = false;
    /// A kernel family computes the nest as a whole, such as Winograd or FlashAttention: passes
    /// neither split nor fuse it and do not replace its operands.
    bool is_indivisible = false;
    /// Constants that the nest reads in packed form.
    std::vector<Packing> packings = {};
  };
  std::vector<Buffer> buffers;
  std::vector<NestCall> parts;
};

/// Derives the nests. Reductions, scans and scatters are stages; stages that share outer loops are
/// fused into one nest, with data between them in thread-local scratch. Tensors without elements
/// need no nest. Stages with fewer than `min_shared_iterations` iterations of the shared loops
/// join only if they share all loops of the first, or all but one of their own. Throws Error of
/// kind Unsupported for element types that kernels do not support.
NestSequence build_nests(const std::string& name, const std::vector<Expr>& results,
                         std::int64_t min_shared_iterations = 8);

/// Returns whether kernels support this element type.
bool is_compilable(DType dtype);

}  // namespace tenon::nests
