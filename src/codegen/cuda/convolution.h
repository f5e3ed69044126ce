#pragma once

#include "codegen/cuda/library_match.h"
#include "codegen/cuda/product.h"

#include <optional>
#include <string_view>

namespace tenon::codegen::cuda {

/// A convolution of narrow floats over few pixels, or of bytes, with whatever follows: tiles of up
/// to 64 pixels by 64 outputs on tensor cores, the sum of each shared by a cluster of blocks.
/// Libraries leave most multiprocessors idle with few pixels.
struct ConvolutionTile {
  /// Pixels (batch, row, column as one), outputs and what becomes of a sum, as a product has them.
  ProductTile product;
  Scalar image, weights;  ///< loads; weights lie as output, row, column, channel
  std::int64_t batch = 1, rows = 1, columns = 1, outputs = 1,
               channels = 1;  ///< rows …: of the result
  std::int64_t window_rows = 1, window_columns = 1, rows_before = 0, columns_before = 0;
  std::int64_t row_stride = 1, column_stride = 1, row_dilation = 1, column_dilation = 1;
  std::int64_t tile_rows = 1, tile_columns = 1;  ///< of pixels
  std::int64_t cluster = 1;

  std::int64_t tile_count() const;
};

/// Nothing where the nest is anything else, weights lie otherwise, the target has no such
/// instructions, or there are enough pixels for a library and that takes them.
std::optional<ConvolutionTile> match_convolution_tile(const LoopNest& nest, const Target& target);

/// The nest with what follows the sum left out: what a library would be asked for.
LoopNest without_epilogue(const LoopNest& nest);

/// One warp loads, four sum.
inline constexpr unsigned kConvolutionThreads = 160;
inline constexpr std::int64_t kConvolutionTile = 64;
std::uint32_t convolution_shared_bytes();

/// CUDA C++ that such kernels call.
std::string_view convolution_template();

}  // namespace tenon::codegen::cuda
