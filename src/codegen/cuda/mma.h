#pragma once

#include "codegen/cuda/convolution.h"
#include "codegen/cuda/gemm.h"

#include <optional>
#include <string_view>

namespace tenon::codegen::cuda {

/// A GEMM or an implicit-GEMM convolution with fused epilogue for tensor cores that take register
/// fragments (`mma.sync`), from compute capability 8.0 on. A cp.async pipeline copies operands to
/// shared memory in 16-byte pieces.
struct MmaTile {
  GemmTile gemm;
  /// Set for convolutions, where rows are pixels; its `gemm` is the one above.
  std::optional<ConvolutionTile> convolution;
  /// Groups of channels; their loop is the last of the rows' loops.
  std::int64_t groups = 1;
  /// Tile size.
  std::int64_t rows = 128, columns = 128;

  Dim row_count() const { return convolution ? convolution->pixel_count() : gemm.row_count; }
  /// Number of tiles; one thread block each.
  Dim tile_count() const;
};

/// Returns nullopt if the nest does not match, the target lacks mma.sync, or has wgmma.
std::optional<MmaTile> match_mma(const LoopNest& nest, const CudaTarget& target);

inline constexpr unsigned kMmaThreads = 128;
/// Bytes of a row per pipeline stage. The number of stages follows from the shared memory; two
/// blocks fit on every multiprocessor of compute capability 8.0 and later.
inline constexpr std::int64_t kMmaTileBytes = 64;
inline constexpr std::uint32_t kMmaSharedBytes = 48 << 10;

/// CUDA C++ functions that mma kernels call.
std::string_view mma_template();

}  // namespace tenon::codegen::cuda
