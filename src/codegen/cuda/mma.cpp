#include "codegen/cuda/mma.h"

#include "target/gpu_facts.h"

#include <algorithm>
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

// Cycles of a multiprocessor for a tile, for each 16 numbers of two bytes that are summed: those of
// its 1024 products a cycle, or of shared memory, where four warps read half of each side twice and
// what is copied is written once, 128 bytes a cycle.
std::int64_t cycles_of(std::int64_t rows, std::int64_t columns) {
  const std::int64_t products = rows * columns * 16 / 1024, bytes = (2 + 1) * (rows + columns) * 32;
  return std::max(products, bytes / 128);
}

// The tiles that multiprocessors have done first, each its share of them; the largest of those.
void choose_tile(MmaTile& tile, const Target& target) {
  constexpr std::array<std::pair<std::int64_t, std::int64_t>, 3> kTiles = {
      {{128, 128}, {128, 64}, {64, 64}}};
  const std::int64_t units = gpu_facts(target.architecture).units;
  std::optional<std::int64_t> least;
  MmaTile best = tile;
  for (const auto& [rows, columns] : kTiles) {
    // Half of it would be beyond the last column.
    if (2 * tile.product.column_count <= columns && columns > kTiles.back().second) continue;
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
