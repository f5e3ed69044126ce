#pragma once

#include "codegen/cuda/library_match.h"
#include "codegen/cuda/product.h"

#include <optional>
#include <string_view>

namespace tenon::codegen::cuda {

/// A convolution of numbers that tensor cores take, with whatever follows. Over few pixels: tiles
/// of 64 of them by 64 outputs, whose sums and pixels the blocks of a cluster share;
/// libraries leave most multiprocessors idle there. Over many: a product whose rows are pixels
/// (`product_template()`).
struct ConvolutionTile {
  /// Pixels (batch, row, column as one), outputs and what becomes of a sum, as a product has them.
  ProductTile product;
  /// loads; weights lie as output, row, column, channel
  Scalar image, weights;
  Dim batch = 1;
  /// rows …: of the result
  std::int64_t rows = 1, columns = 1, outputs = 1, channels = 1;
  std::int64_t window_rows = 1, window_columns = 1, rows_before = 0, columns_before = 0;
  std::int64_t row_stride = 1, column_stride = 1, row_dilation = 1, column_dilation = 1;
  /// Tiles of 128 pixels, not 64, on from row to row and from image to image.
  bool is_large = false;
  std::int64_t tile_outputs = 64;
  /// Of tiles of 64 pixels: blocks that share a tile's sum, tiles of other outputs that share its
  /// pixels, and what shared memory holds of a block's part of the sum.
  std::int64_t parts = 1, beside = 1, stages = 1;

  std::int64_t cluster() const { return parts * beside; }
  Dim block_count() const { return tile_count() * Dim(parts); }
  Dim pixel_count() const { return batch * Dim(rows * columns); }
  Dim tile_count() const;
  /// Of a tile's sum: places of the window, 128 bytes of channels.
  std::int64_t stage_count() const;
};

/// A convolution whose weights lie so, whatever instructions there are and however it is cut into
/// tiles.
std::optional<ConvolutionTile> find_convolution(const LoopNest& nest, const Target& target);

/// Nothing where the nest is anything else, weights lie otherwise, the target has no such
/// instructions, or there are enough pixels for a library and that takes them.
std::optional<ConvolutionTile> match_convolution_tile(const LoopNest& nest, const Target& target);

/// The nest with what follows the sum left out: what a library would be asked for.
LoopNest without_epilogue(const LoopNest& nest);

/// One warp copies, four sum.
inline constexpr unsigned kConvolutionThreads = 160;
inline constexpr std::int64_t kConvolutionTile = 64;
std::uint32_t convolution_shared_bytes(const ConvolutionTile& tile);

/// CUDA C++ that such kernels call.
std::string_view convolution_template();

}  // namespace tenon::codegen::cuda
