#include "codegen/cuda/attention_split.h"

#include "codegen/cuda/attention_wgmma.h"

#include <algorithm>

namespace tenon::codegen::cuda {
namespace {

constexpr std::int64_t kMostSplitRows = 16;          // of an mma fragment
constexpr std::int64_t kMostSplitParts = 8;          // portable cluster size
constexpr std::int64_t kSplitStageBytes = 96 << 10;  // two blocks per multiprocessor
constexpr std::int64_t kSplitAlignment = 1024;
constexpr std::int64_t kMostSplitBytes = 226 << 10;  // of a block, next to its barriers

// Keys and values of one tile.
std::int64_t split_stage_bytes(const AttentionTile& tile) {
  return kSplitKeys * tile.head_size * 2 * 2;
}

// Splits the keys until about every multiprocessor has a block; a block keeps a few tiles. More
// blocks are slower. Measured on an H200.
std::int64_t chosen_parts(const AttentionTile& tile) {
  constexpr std::int64_t kBlocks = 100, kFewestTiles = 2;
  std::int64_t heads = 1;
  for (const Statement* loop : tile.outer)
    heads *= loop->extent.is_constant() ? std::min(loop->extent.constant(), kBlocks) : 1;
  const std::int64_t tiles =
      tile.keys.is_constant() ? tile.keys.constant() / kSplitKeys : kMostSplitParts * kFewestTiles;
  std::int64_t parts = 1;
  while (parts < kMostSplitParts && heads * parts < kBlocks && tiles >= 2 * parts * kFewestTiles)
    parts *= 2;
  return parts;
}

}  // namespace

std::optional<SplitAttention> match_split_attention(const AttentionTile& tile,
                                                    const CudaTarget& target) {
  if (target.architecture != "sm_90a" || target.prefers_mma_sync || !has_mapped_operands(tile))
    return std::nullopt;
  const Dim rows = query_count(tile);
  if (!rows.is_constant() || rows.constant() > kMostSplitRows) return std::nullopt;
  SplitAttention made;
  made.rows = rows.constant();
  made.parts = chosen_parts(tile);
  made.last_key = last_visible_key(tile);
  if (!made.last_key) made.scale = linear_scale(tile, false);
  if (tile.head_size == 256) made.resident_blocks = 1;
  const std::int64_t stage = split_stage_bytes(tile);
  made.stages = std::max<std::int64_t>(3, kSplitStageBytes / stage);
  while (shared_bytes(tile, made) > kMostSplitBytes) --made.stages;
  return made;
}

Dim block_count(const AttentionTile& tile, const SplitAttention& attention) {
  Dim blocks = attention.parts;
  for (const Statement* loop : tile.outer) blocks = blocks * loop->extent;
  return blocks;
}

std::uint32_t shared_bytes(const AttentionTile& tile, const SplitAttention& attention) {
  const std::int64_t size = tile.head_size, stages = attention.stages * kSplitKeys * 2 * size * 2,
                     received = attention.parts * attention.rows * (size + 4) * 4;
  return static_cast<std::uint32_t>(stages + (attention.parts > 1 ? received : 0) +
                                    kSplitAlignment);
}

}  // namespace tenon::codegen::cuda
