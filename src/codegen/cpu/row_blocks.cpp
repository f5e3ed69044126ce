// Cache blocking of GEMM rows, columns and images, balanced over threads.
#include "codegen/cpu/row_blocks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tenon::codegen::cpu {

std::optional<std::int64_t> rows_in_block(const Dim& rows, unsigned rows_at_once,
                                          const std::vector<Dim>& around) {
  constexpr std::int64_t kEnoughItems = 8, kUsualTiles = 8;
  std::int64_t items = 1;
  for (const Dim& extent : around) {
    // A symbolic extent may be a batch of one.
    if (extent.is_constant()) items = std::min(items * extent.constant(), kEnoughItems);
  }
  if (items == 0 || items >= kEnoughItems) return std::nullopt;
  const std::int64_t width = rows_at_once, wanted = (kEnoughItems + items - 1) / items;
  std::int64_t tiles_in_block = kUsualTiles;
  if (rows.is_constant()) {
    const std::int64_t tiles = (rows.constant() + width - 1) / width;
    if (tiles < 2) return std::nullopt;
    tiles_in_block = (tiles + wanted - 1) / wanted;
  }
  return tiles_in_block * width;
}

std::optional<std::int64_t> rows_outermost(const Dim& rows, unsigned rows_at_once,
                                           std::int64_t result_bytes, std::int64_t cache_bytes) {
  constexpr std::int64_t kTiles = 2;
  const std::int64_t block = kTiles * static_cast<std::int64_t>(rows_at_once);
  if (!rows.is_constant() || rows.constant() < 4 * block || result_bytes <= cache_bytes)
    return std::nullopt;
  return block;
}

std::int64_t lines_in_cache(std::int64_t distance, const MemoryLevel& cache, unsigned line_bytes) {
  const std::int64_t line = line_bytes / 4, ways = cache.ways - 1;
  const auto places = static_cast<std::int64_t>(cache.bytes / cache.ways / line_bytes);
  if (distance == 0 || distance % line != 0) return ways * places;
  return ways * places / std::gcd(distance / line, places);
}

unsigned rows_in_cache(std::int64_t distance, const TargetFacts& target) {
  const MemoryLevel& cache = target.nearest();
  const auto places = static_cast<std::int64_t>(cache.bytes / cache.ways / target.line_bytes);
  const bool is_even = distance == 0 || distance % (target.line_bytes / 4) != 0;
  return static_cast<unsigned>(is_even ? places
                                       : lines_in_cache(distance, cache, target.line_bytes));
}

namespace {

// Shares of a core's own cache: for data that stays resident, and for data kept next to a stream.
constexpr double kHeld = 0.75, kKept = 0.5;
constexpr double kEvenEnough = 0.9, kClearly = 1.1;

// Load balance: share of the time that units are busy if they process this many equal items.
double evenness(std::int64_t items, const TargetFacts& target) {
  const auto units = static_cast<std::int64_t>(target.units);
  return static_cast<double>(items) / static_cast<double>((items + units - 1) / units * units);
}

}  // namespace

RowBlocks blocks_of_rows(std::int64_t rows, std::int64_t fewest, std::int64_t tile_rows,
                         double row_bytes, std::int64_t items, const TargetFacts& target) {
  constexpr std::int64_t kMostParts = 64;
  const auto own = static_cast<double>(target.private_cache().bytes);
  RowBlocks blocks{rows, row_bytes * static_cast<double>(rows) <= kHeld * own};
  double best = 0;
  for (std::int64_t parts = 1; parts <= kMostParts && rows / parts >= fewest; ++parts) {
    if (rows % parts != 0) continue;
    const double even = evenness(items * parts, target);
    if (!blocks.is_columns_first) {
      blocks.rows = rows / parts;
      if (row_bytes * static_cast<double>(blocks.rows) <= kKept * own && even >= kEvenEnough) break;
    } else if (even > best) {
      best = even;
      blocks.rows = rows / parts;
      if (even >= kEvenEnough) break;
    }
  }
  if (tile_rows == 0 || !blocks.is_columns_first || best >= kEvenEnough) return blocks;
  // For row counts without small divisors, such as 13 x 13: whole register tiles, the last block
  // smaller.
  const auto units = static_cast<double>(target.units);
  for (std::int64_t block = (fewest + tile_rows - 1) / tile_rows * tile_rows; block < rows;
       block += tile_rows) {
    const double turns =
        std::ceil(static_cast<double>(items * ((rows + block - 1) / block)) / units);
    const double even =
        static_cast<double>(items * rows) / (units * turns * static_cast<double>(block));
    if (even <= kClearly * best) continue;
    best = even;
    blocks.rows = block;
  }
  return blocks;
}

std::int64_t columns_together(std::int64_t column_blocks, std::int64_t around, double rows_bytes,
                              const TargetFacts& target) {
  constexpr std::int64_t kMost = 4;  // Their accumulators share the same cache.
  if (rows_bytes <= kKept * static_cast<double>(target.private_cache().bytes)) return 1;
  const double enough = std::min(kEvenEnough, evenness(column_blocks * around, target));
  std::int64_t together = 1;
  for (std::int64_t count = 2; count <= kMost; ++count) {
    if (column_blocks % count == 0 && evenness(column_blocks / count * around, target) >= enough)
      together = count;
  }
  return together;
}

std::int64_t images_together(std::int64_t images, double image_bytes, double weight_bytes,
                             std::int64_t column_blocks, const TargetFacts& target) {
  const auto own = static_cast<double>(target.private_cache().bytes);
  const double all = image_bytes * static_cast<double>(images);
  if (all <= kHeld * own) return 0;
  std::int64_t together = 1;
  for (std::int64_t count = 2; count < images; ++count) {
    if (images % count == 0 && image_bytes * static_cast<double>(count) <= kKept * own)
      together = count;
  }
  const double by_images = weight_bytes * static_cast<double>(images / together) + all;
  return by_images < all * static_cast<double>(column_blocks) ? together : 0;
}

}  // namespace tenon::codegen::cpu
