#include "codegen/cuda/mma.h"

#include "target/gpu_facts.h"

#include <array>
#include <utility>

namespace tenon::codegen::cuda {
namespace {

// A pixel's channels begin at a multiple of what is copied at once.
bool suits_copies(const ConvolutionTile& tile) {
  constexpr std::int64_t kCopied = 16;
  const Dim pixels = tile.pixel_count();
  const bool has_pixels =
      !pixels.is_constant() || (pixels.constant() > 0 && pixels.constant() <= kMostRows);
  const auto bytes = static_cast<std::int64_t>(info(tile.product.dtype).storage_bytes);
  return has_pixels && tile.outputs % kTogether == 0 && tile.channels * bytes % kCopied == 0;
}

// The largest tiles of which there is one for each multiprocessor, or the smallest.
void choose_tile(MmaTile& tile, const Target& target) {
  constexpr std::array<std::pair<std::int64_t, std::int64_t>, 3> kTiles = {
      {{128, 128}, {128, 64}, {64, 64}}};
  const std::int64_t units = gpu_facts(target.architecture).units;
  for (const auto& [rows, columns] : kTiles) {
    tile.rows = rows;
    tile.columns = columns;
    if (columns > kTiles.back().second && tile.product.column_count <= kTiles.back().second)
      continue;
    const std::optional<std::int64_t> count = tile.tile_count().value();
    if (!count || *count >= units) return;
  }
}

}  // namespace

Dim MmaTile::tile_count() const {
  return ceil_div(row_count(), rows) * Dim((product.column_count + columns - 1) / columns);
}

std::optional<MmaTile> match_mma(const LoopNest& nest, const Target& target) {
  if (!target.has_mma()) return std::nullopt;
  MmaTile tile;
  if (auto product = find_product(nest, target)) {
    tile.product = std::move(*product);
  } else if (auto convolution = find_convolution(nest, target)) {
    if (!suits_copies(*convolution)) return std::nullopt;
    tile.product = convolution->product;
    tile.product.column_count = convolution->outputs;
    tile.product.inner_count =
        convolution->window_rows * convolution->window_columns * convolution->channels;
    tile.product.b_pitch = tile.product.inner_count;
    tile.product.a = convolution->image;
    tile.product.b = convolution->weights;
    tile.convolution = std::move(*convolution);
  } else {
    return std::nullopt;
  }
  choose_tile(tile, target);
  return tile;
}

}  // namespace tenon::codegen::cuda
