#include "codegen/cuda/convolution.h"

#include "codegen/cuda/distance.h"
#include "codegen/cuda/sum_store.h"
#include "target/gpu_facts.h"

#include <algorithm>
#include <utility>

namespace tenon::codegen::cuda {
namespace {

constexpr std::int64_t kMostCluster = 8;
constexpr std::int64_t kStages = 6;  // as `convolution_template()` has them
constexpr std::int64_t kMostBox = 256, kMostStep = 8;
// Of the sum that a block may have where a library would do.
constexpr std::int64_t kMostStages = 12;

// Pixels that lie in a rectangle: as few tiles as can be.
void choose_tile(ConvolutionTile& tile) {
  const auto pieces = [](std::int64_t all, std::int64_t piece) {
    return (all + piece - 1) / piece;
  };
  std::int64_t least = 0;
  for (std::int64_t columns = 1; columns <= std::min(tile.columns, kConvolutionTile); ++columns) {
    const std::int64_t rows = std::min(tile.rows, kConvolutionTile / columns);
    if (columns * tile.column_stride > kMostBox || rows * tile.row_stride > kMostBox) continue;
    const std::int64_t count = pieces(tile.columns, columns) * pieces(tile.rows, rows);
    if (least == 0 || count <= least) {  // of as many those with the longer rows
      least = count;
      tile.tile_rows = rows;
      tile.tile_columns = columns;
    }
  }
}

}  // namespace

std::int64_t ConvolutionTile::tile_count() const {
  return batch * ((rows + tile_rows - 1) / tile_rows) *
         ((columns + tile_columns - 1) / tile_columns) * (outputs / kConvolutionTile);
}

LoopNest without_epilogue(const LoopNest& nest) {
  LoopNest plain = nest;
  const auto sum = find_tile_sum(plain);
  const std::size_t local = (*sum->inner)[0].id;
  const Statement store = *only_store(*sum);
  Block* block = &plain.body;
  while (block->size() == 1 && block->front().kind == Statement::Kind::Loop)
    block = &block->front().body;
  block->resize(2);
  block->push_back(store);
  block->back().value = local_scalar(local, plain.locals[local]);
  return plain;
}

std::optional<ConvolutionTile> match_convolution_tile(const LoopNest& nest, const Target& target) {
  if (!target.has_wgmma()) return std::nullopt;
  const auto sum = find_tile_sum(nest);
  if (!sum) return std::nullopt;
  const std::optional<Statement> store = only_store(*sum);
  if (!store) return std::nullopt;
  ConvolutionTile tile;
  ProductTile& product = tile.product;
  if (!take_store(nest, *sum, *store, product)) return std::nullopt;
  if (product.has_bytes() && !target.multiplies_bytes) return std::nullopt;
  const LoopNest plain = without_epilogue(nest);
  const auto plain_sum = find_tile_sum(plain);
  const LibraryMatch match =
      match_convolution(plain, *plain_sum, std::vector<bool>(plain.buffers.size(), false),
                        Channels::AsTheyAre, Numbers::Any);
  if (!match.refusal.empty()) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const Dim& dim : match.extents) {
    if (!dim.is_constant()) return std::nullopt;
    numbers.push_back(dim.constant());
  }
  tile.batch = numbers[0];
  tile.channels = numbers[3];
  tile.outputs = numbers[4];
  tile.window_rows = numbers[5];
  tile.window_columns = numbers[6];
  tile.rows = numbers[7];
  tile.columns = numbers[8];
  tile.rows_before = numbers[9];
  tile.columns_before = numbers[11];
  tile.row_stride = numbers[13];
  tile.column_stride = numbers[14];
  tile.row_dilation = numbers[15];
  tile.column_dilation = numbers[16];
  const std::int64_t depth = tile_depth(product.dtype);
  // What is read beyond the last channel of bytes is zero, whatever weights it meets; of floats
  // those may be infinite. A window of one place is a product, which libraries know for floats.
  const bool suits = product.has_bytes()
                         ? tile.channels % 16 == 0
                         : tile.channels % depth == 0 && tile.window_rows * tile.window_columns > 1;
  const bool is_tiled = suits && tile.outputs % kConvolutionTile == 0 &&
                        tile.row_stride <= kMostStep && tile.column_stride <= kMostStep;
  const bool has_pixels = tile.batch > 0 && tile.rows > 0 && tile.columns > 0;
  if (!is_tiled || !has_pixels) return std::nullopt;
  tile.image = match.buffers[0] == sum->a->id ? sum->a : sum->b;
  tile.weights = match.buffers[0] == sum->a->id ? sum->b : sum->a;
  if (tile.image->id != sum->a->id) std::swap(product.dtype, product.b_dtype);
  for (const Statement* loop : sum->parallel) {
    if (loop->limit.is_defined()) return std::nullopt;
    const auto step = distance(*store, loop->id);
    if (step && *step == Dim(1)) {
      product.columns = loop;
    } else {
      product.rows.push_back(loop);
    }
  }
  if (product.columns == nullptr) return std::nullopt;
  std::sort(product.rows.begin(), product.rows.end(), [&](const Statement* a, const Statement* b) {
    return distance(*store, a->id)->constant() > distance(*store, b->id)->constant();
  });
  choose_tile(tile);
  const std::int64_t units = gpu_facts(target.architecture).units, tiles = tile.tile_count();
  const std::int64_t stages =
      tile.window_rows * tile.window_columns * ((tile.channels + depth - 1) / depth);
  // Two blocks fit beside each other; each is to have some of the sum.
  tile.cluster = std::clamp<std::int64_t>(std::min(2 * units / tiles, stages / 4), 1, kMostCluster);
  // A long sum for each of many tiles is done faster by a library's larger tiles, which read less.
  const bool is_small = tiles <= units && stages <= kMostStages * tile.cluster;
  if (target.uses_libraries && !is_small && !product.has_bytes()) return std::nullopt;
  return tile;
}

std::uint32_t convolution_shared_bytes() {
  return static_cast<std::uint32_t>(1024 + kStages * 2 * kConvolutionTile * kTileBytes);
}

}  // namespace tenon::codegen::cuda
