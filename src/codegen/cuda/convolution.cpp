#include "codegen/cuda/convolution.h"

#include "codegen/cuda/library_conditions.h"
#include "codegen/cuda/loop_stride.h"
#include "target/gpu_facts.h"

#include <algorithm>
#include <utility>

namespace tenon::codegen::cuda {
namespace {

constexpr std::int64_t kMostCluster = 8;
constexpr std::int64_t kMostStep = 8;
constexpr std::int64_t kStageBytes = 2 * kConvolutionTile * kTileBytes;
// Shared memory of a block that the driver, mbarriers and alignment of the first stage occupy.
constexpr std::int64_t kOwnBytes = 1024 + 256 + 1024;
// Stages of the reduction per block: minimum, and maxima for small and large tiles; waves of tiles
// per multiprocessor. Beyond them larger tiles or a library are faster. Measured with ResNet-50's
// layers on an H200.
constexpr std::int64_t kFewestStages = 4, kMostSmallStages = 36, kMostLargeStages = 72, kWaves = 2;

// Reads past the last channel yield zero. Bytes times any weight then add zero, but float weights
// may be infinite. A 1x1 window with unit stride is a GEMM, which libraries cover for floats.
bool suits_tiles(const ConvolutionTile& tile) {
  const Dim pixels = tile.pixel_count();
  const bool has_pixels =
      !pixels.is_constant() || (pixels.constant() > 0 && pixels.constant() <= kMostRows);
  if (!has_pixels || tile.groups != 1 || tile.row_stride > kMostStep ||
      tile.column_stride > kMostStep)
    return false;
  if (tile.gemm.has_bytes()) return tile.channels % 16 == 0;
  const bool is_product =
      tile.window_rows * tile.window_columns * tile.row_stride * tile.column_stride == 1;
  return tile.channels % tile_depth(tile.gemm.dtype) == 0 && !is_product;
}

// True if the offsets of a window's taps relative to the image borders fit in a signed byte, as
// im2col tensor maps require.
bool has_short_windows(const ConvolutionTile& tile) {
  constexpr std::int64_t kByte = 256;
  const auto suits = [](std::int64_t before, std::int64_t places, std::int64_t step,
                        std::int64_t window, std::int64_t dilation, const Dim& extent) {
    const std::int64_t last = (places - 1) * step - before - (extent.constant() - 1);
    return before <= kByte / 2 && last >= -kByte / 2 && last < kByte / 2 &&
           (window - 1) * dilation < kByte;
  };
  const Dims& image = tile.image->view;
  return suits(tile.rows_before, tile.rows, tile.row_stride, tile.window_rows, tile.row_dilation,
               image[1]) &&
         suits(tile.columns_before, tile.columns, tile.column_stride, tile.window_columns,
               tile.column_dilation, image[2]);
}

// Bytes of partial sums that a block receives from the other parts: one or two pieces of eight per
// thread.
std::int64_t sent_bytes(const ConvolutionTile& tile) {
  const std::int64_t pieces = (tile.parts - 1) * std::max<std::int64_t>(1, 4 / tile.parts);
  return pieces * 128 * 8 * 4;
}

// Chooses the largest number of pipeline stages that shared memory holds, for one or two resident
// blocks; returns whether all blocks are resident at once.
bool fit_stages(ConvolutionTile& tile, const TargetFacts& facts) {
  const std::int64_t blocks = tile.block_count().constant();
  const auto all = static_cast<std::int64_t>(facts.nearest().bytes) + 1024;
  const auto held_by = [&](std::int64_t count) {
    return (all / count - kOwnBytes - sent_bytes(tile)) / kStageBytes;
  };
  const std::int64_t share = (tile.stage_count() + tile.parts - 1) / tile.parts;
  const bool are_alone = blocks <= facts.units && share > held_by(2);
  tile.stages = std::min(share, held_by(are_alone ? 1 : 2));
  return blocks <=
         (are_alone ? 1 : 2) * (tile.cluster() > 2 ? facts.cluster_capable_units : facts.units);
}

// Configures 64x64 tiles in clusters, for few pixels.
bool make_small(ConvolutionTile& tile, const TargetFacts& facts) {
  if (!tile.batch.is_constant() || tile.outputs % kConvolutionTile != 0) return false;
  tile.is_large = false;
  tile.tile_outputs = kConvolutionTile;
  tile.parts = tile.siblings = 1;
  const std::int64_t tiles = tile.tile_count().constant();
  while (2 * tile.parts <= kMostCluster && 2 * tile.parts * tiles <= facts.units &&
         tile.stage_count() >= 2 * tile.parts * kFewestStages)
    tile.parts *= 2;
  while (!fit_stages(tile, facts) && tile.parts > 1) tile.parts /= 2;
  if (2 * tile.parts > kMostCluster || tile.outputs % (2 * kConvolutionTile) != 0) return true;
  ConvolutionTile sharing = tile;
  sharing.siblings = 2;
  if (fit_stages(sharing, facts)) tile = std::move(sharing);
  return true;
}

// True if each block reduces only a short range. A long reduction over many tiles is faster with
// larger tiles, which read less.
bool is_short(const ConvolutionTile& tile, std::int64_t units) {
  const bool are_alone = tile.block_count().constant() <= units;
  return tile.tile_count().constant() <= kWaves * units &&
         tile.stage_count() <= (are_alone ? 2 : 1) * kMostSmallStages * tile.parts;
}

bool make_large(ConvolutionTile& tile) {
  tile.is_large = true;
  tile.tile_outputs = tile.outputs <= kConvolutionTile ? kConvolutionTile : kProductTile;
  return tile.outputs % kTogether == 0;
}

// Chooses the tile size by the number of pixels. Refuses where a library is faster: many tiles or
// long reductions (its tiles are larger). The library's own choice for few pixels is far from
// optimal.
bool choose_form(ConvolutionTile& tile, const CudaTarget& target) {
  if (!suits_tiles(tile) || !has_short_windows(tile)) return false;
  const TargetFacts facts = gpu_facts(target.architecture);
  const std::int64_t units = facts.units;
  ConvolutionTile small = tile, large = tile;
  const bool may_be_small = make_small(small, facts), may_be_large = make_large(large);
  const std::optional<std::int64_t> large_tiles = large.tile_count().value();
  const bool is_quick =
      large_tiles && *large_tiles <= kWaves * units && large.stage_count() <= kMostLargeStages;
  if (may_be_small && is_short(small, units)) {
    tile = std::move(small);
  } else if (may_be_large && (is_quick || !target.uses_libraries || tile.gemm.has_bytes())) {
    tile = std::move(large);
  } else if (may_be_small && (!target.uses_libraries || tile.gemm.has_bytes())) {
    tile = std::move(small);
  } else {
    return false;
  }
  return true;
}

}  // namespace

Dim ConvolutionTile::tile_count() const {
  const std::int64_t across = (outputs + tile_outputs - 1) / tile_outputs;
  return ceil_div(pixel_count(), is_large ? kProductTile : kConvolutionTile) * Dim(across);
}

std::int64_t ConvolutionTile::stage_count() const {
  const std::int64_t depth = tile_depth(gemm.dtype);
  return window_rows * window_columns * ((channels + depth - 1) / depth);
}

std::optional<ConvolutionTile> find_convolution(const LoopNest& nest, const CudaTarget& target) {
  const auto contraction = find_tile_contraction(nest);
  if (!contraction) return std::nullopt;
  const std::optional<Statement> store = only_store(*contraction);
  if (!store) return std::nullopt;
  ConvolutionTile tile;
  GemmTile& gemm = tile.gemm;
  if (!take_store(nest, *contraction, *store, target, gemm)) return std::nullopt;
  const WindowMatch windows = match_windows(*contraction, *store);
  if (!windows.refusal.empty() || !windows.has_weight_layout) return std::nullopt;
  const auto& [rows, columns] = windows.axes;
  for (const Dim& dim : {rows.image, columns.image, rows.result, columns.result}) {
    if (!dim.is_constant()) return std::nullopt;
  }
  tile.batch = windows.batch_count;
  tile.groups = windows.group_count;
  tile.channels = windows.channel_count;
  tile.outputs = windows.output_count.constant();
  tile.window_rows = rows.taps;
  tile.window_columns = columns.taps;
  tile.rows = rows.result.constant();
  tile.columns = columns.result.constant();
  tile.rows_before = rows.before;
  tile.columns_before = columns.before;
  tile.row_stride = rows.stride;
  tile.column_stride = columns.stride;
  tile.row_dilation = rows.dilation;
  tile.column_dilation = columns.dilation;
  const bool is_a_image = windows.image->id == contraction->a->id;
  tile.image = is_a_image ? contraction->a : contraction->b;
  tile.weights = is_a_image ? contraction->b : contraction->a;
  if (!is_a_image) std::swap(gemm.dtype, gemm.b_dtype);
  for (const Statement* loop : contraction->parallel) {
    if (loop->limit.is_defined()) return std::nullopt;
    const auto step = distance(*store, loop->id);
    if (step && *step == Dim(1)) {
      gemm.columns = loop;
    } else {
      gemm.rows.push_back(loop);
    }
  }
  if (gemm.columns == nullptr) return std::nullopt;
  std::sort(gemm.rows.begin(), gemm.rows.end(), [&](const Statement* a, const Statement* b) {
    return distance(*store, a->id)->constant() > distance(*store, b->id)->constant();
  });
  return tile;
}

std::optional<ConvolutionTile> match_convolution_tile(const LoopNest& nest,
                                                      const CudaTarget& target) {
  if (!target.has_wgmma()) return std::nullopt;
  std::optional<ConvolutionTile> tile = find_convolution(nest, target);
  if (tile && !choose_form(*tile, target)) return std::nullopt;
  return tile;
}

std::uint32_t convolution_shared_bytes(const ConvolutionTile& tile) {
  if (tile.is_large) return kProductSharedBytes;
  return static_cast<std::uint32_t>(1024 + tile.stages * kStageBytes + sent_bytes(tile));
}

}  // namespace tenon::codegen::cuda
