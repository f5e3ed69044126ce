#pragma once

#include "codegen/cuda/gemm.h"
#include "codegen/cuda/window_match.h"

#include <optional>
#include <string_view>

namespace tenon::codegen::cuda {

/// An implicit-GEMM convolution on tensor cores (wgmma) with fused epilogue. For few pixels: tiles
/// of 64 pixels by 64 outputs; the blocks of a cluster split the reduction (split-K) and multicast
/// the pixels, because libraries leave most multiprocessors idle there. For many pixels: a GEMM
/// whose rows are pixels (`gemm_template()`).
struct ConvolutionTile {
  /// The GEMM view: rows are pixels (batch, row and column flattened), columns are outputs;
  /// includes the epilogue.
  GemmTile gemm;
  /// Loads of image and weights; weights are laid out as output, row, column, channel.
  Scalar image, weights;
  Dim batch = 1;
  /// Groups of channels; their loop is the last of the rows' loops.
  std::int64_t groups = 1;
  /// Extents of the result (rows, columns, outputs of a group) and of the image (channels of one).
  std::int64_t rows = 1, columns = 1, outputs = 1, channels = 1;
  std::int64_t window_rows = 1, window_columns = 1, rows_before = 0, columns_before = 0;
  std::int64_t row_stride = 1, column_stride = 1, row_dilation = 1, column_dilation = 1;
  /// Tiles of 128 pixels instead of 64; a tile continues across rows and images.
  bool is_large = false;
  std::int64_t tile_outputs = 64;
  /// Cluster shape of 64-pixel tiles: blocks that split a tile's reduction, tiles of other outputs
  /// that share its pixels by multicast, and pipeline stages in shared memory.
  std::int64_t parts = 1, siblings = 1, stages = 1;

  std::int64_t cluster() const { return parts * siblings; }
  Dim block_count() const { return tile_count() * Dim(parts); }
  Dim pixel_count() const { return batch * Dim(rows * columns); }
  Dim tile_count() const;
  /// Steps of the reduction: window taps times groups of channels of 128 bytes.
  std::int64_t stage_count() const;
};

/// Matches a convolution, grouped or not, with weights in that layout, independent of available
/// instructions and tile sizes.
std::optional<ConvolutionTile> find_convolution(const LoopNest& nest, const CudaTarget& target);

/// Returns nullopt if the nest does not match, weights have another layout, the target lacks wgmma,
/// or the pixels suffice for a library that supports the convolution.
std::optional<ConvolutionTile> match_convolution_tile(const LoopNest& nest,
                                                      const CudaTarget& target);

/// One TMA producer warp and four consumer warps (one warpgroup).
inline constexpr unsigned kConvolutionThreads = 160;
inline constexpr std::int64_t kConvolutionTile = 64;
std::uint32_t convolution_shared_bytes(const ConvolutionTile& tile);

/// CUDA C++ functions that convolution kernels call.
std::string_view convolution_template();

}  // namespace tenon::codegen::cuda
