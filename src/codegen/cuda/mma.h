#pragma once

#include "codegen/cuda/convolution.h"
#include "codegen/cuda/product.h"

#include <optional>
#include <string_view>

namespace tenon::codegen::cuda {

/// A product, or a convolution as a product of pixels, with whatever follows, for tensor cores that
/// take fragments from registers (`mma.sync`): any from compute capability 8.0 on. Operands are
/// copied to shared memory in pieces of 16 bytes that each thread asks for itself, some ahead.
struct MmaTile {
  ProductTile product;
  /// Where rows are pixels that a window is moved to; its `product` is the one above.
  std::optional<ConvolutionTile> convolution;
  /// of channels; their loop is the last of the rows'
  std::int64_t groups = 1;
  /// of a tile
  std::int64_t rows = 128, columns = 128;

  Dim row_count() const { return convolution ? convolution->pixel_count() : product.row_count; }
  /// One block to each.
  Dim tile_count() const;
};

/// Nothing where the nest is anything else or the target has no such instructions, or has better
/// ones.
std::optional<MmaTile> match_mma(const LoopNest& nest, const Target& target);

inline constexpr unsigned kMmaThreads = 128;
/// So many bytes of a row lie in shared memory at once, as often as this has room for: two blocks
/// fit on every multiprocessor of compute capability 8.0 and later.
inline constexpr std::int64_t kMmaTileBytes = 64;
inline constexpr std::uint32_t kMmaSharedBytes = 48 << 10;

/// CUDA C++ that such kernels call.
std::string_view mma_template();

}  // namespace tenon::codegen::cuda
