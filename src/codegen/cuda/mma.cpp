#include "codegen/cuda/mma.h"

#include "target/gpu_facts.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tenon::codegen::cuda {
namespace {

// Derives the GEMM view of a convolution. Returns false if a pixel's channels do not start at a
// multiple of the copy size.
bool set_convolution(MmaTile& tile) {
  constexpr std::int64_t kCopied = 16;
  const ConvolutionTile& convolution = *tile.convolution;
  const Dim pixels = convolution.pixel_count() * Dim(tile.groups);
  const bool has_pixels =
      !pixels.is_constant() || (pixels.constant() > 0 && pixels.constant() <= kMostRows);
  tile.gemm = convolution.gemm;
  tile.gemm.column_count = convolution.outputs;
  tile.gemm.inner_count =
      convolution.window_rows * convolution.window_columns * convolution.channels;
  tile.gemm.b_pitch = tile.gemm.inner_count;
  tile.gemm.a = convolution.image;
  tile.gemm.b = convolution.weights;
  const auto bytes = static_cast<std::int64_t>(info(tile.gemm.dtype).storage_bytes);
  return has_pixels && convolution.outputs % kTogether == 0 &&
         convolution.channels * bytes % kCopied == 0;
}

// Cycles of a multiprocessor per tile and per 16 elements of K (two bytes each): the maximum of the
// tensor cores (1024 multiply-adds a cycle) and of shared memory (128 bytes a cycle), where four
// warps read half of each operand twice and cp.async writes it once.
std::int64_t cycles_of(std::int64_t rows, std::int64_t columns) {
  const std::int64_t products = rows * columns * 16 / 1024, bytes = (2 + 1) * (rows + columns) * 32;
  return std::max(products, bytes / 128);
}

// Chooses the tile with the shortest makespan over all multiprocessors; ties go to the largest
// tile.
void choose_tile(MmaTile& tile, const CudaTarget& target) {
  constexpr std::array<std::pair<std::int64_t, std::int64_t>, 3> kTiles = {
      {{128, 128}, {128, 64}, {64, 64}}};
  const std::int64_t units = gpu_facts(target.architecture).units;
  std::optional<std::int64_t> least;
  MmaTile best = tile;
  for (const auto& [rows, columns] : kTiles) {
    // More than half of the tile would lie past the last column.
    if (2 * tile.gemm.column_count <= columns && columns > kTiles.back().second) continue;
    tile.rows = rows;
    tile.columns = columns;
    const std::optional<std::int64_t> count = tile.tile_count().value();
    const std::int64_t cycles = count ? (*count + units - 1) / units * cycles_of(rows, columns) : 0;
    if (least && cycles >= *least) continue;
    least = cycles;
    best = tile;
  }
  tile = std::move(best);
}

}  // namespace

Dim MmaTile::tile_count() const {
  return ceil_div(row_count(), rows) * Dim((gemm.column_count + columns - 1) / columns * groups);
}

std::optional<MmaTile> match_mma(const LoopNest& nest, const CudaTarget& target) {
  if (!target.has_mma()) return std::nullopt;
  MmaTile tile;
  if (auto gemm = find_gemm_tile(nest, target)) {
    tile.gemm = std::move(*gemm);
  } else if (auto convolution = find_convolution(nest, target)) {
    tile.groups = convolution->groups;
    tile.convolution = std::move(*convolution);
  } else {
    return std::nullopt;
  }
  if (tile.convolution && !set_convolution(tile)) return std::nullopt;
  choose_tile(tile, target);
  return tile;
}

}  // namespace tenon::codegen::cuda
