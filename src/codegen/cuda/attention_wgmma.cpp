#include "codegen/cuda/attention_wgmma.h"

#include "codegen/cuda/loop_stride.h"
#include "nests/affine.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::codegen::cuda {
namespace {

// With fewer queries a tile is mostly idle.
constexpr std::int64_t kFewestQueries = 33;
constexpr std::int64_t kAttentionStages = 2, kAttentionBytes = 2, kStageAlignment = 1024;

bool is_multiple_of(const Dim& dim, std::int64_t of) { return mod(dim, Dim(of)) == Dim(0); }

// True if the element at loop positions 0 lies at a multiple of `of` elements.
bool starts_at_multiple(const std::vector<Scalar>& indices, const Dims& view, std::int64_t of) {
  Dim start = 0, stride = 1;
  for (std::size_t axis = view.size(); axis-- > 0; stride = stride * view[axis]) {
    const auto affine = nests::affine_of(indices[axis]);
    if (!affine) return false;
    start = start + Dim(affine->start) * stride;
  }
  return is_multiple_of(start, of);
}

// True if TMA boxes of a 2-D map, rows of `row` elements each, hold the head of every row.
bool fits_map(const Scalar& load, const Dim& row, std::int64_t size,
              const std::vector<const Statement*>& outer) {
  if (!row.is_constant() || row.constant() < size || row.constant() % size != 0 ||
      !is_multiple_of(product(load->view), row.constant()))
    return false;
  return starts_at_multiple(load->args, load->view, size) &&
         std::ranges::all_of(outer, [&](const Statement* loop) {
           return is_multiple_of(*distance(load, loop->id), size);
         });
}

// Chooses the tile with the shortest time for fixed extents. Time per block of keys relative to one
// consumer warpgroup: several share keys and values and overlap softmax with products.
std::int64_t chosen_groups(const AttentionTile& tile, std::int64_t most) {
  constexpr double kTimes[] = {0, 1, 1.3, 1.8};
  constexpr double kMultiprocessors = 132;
  std::int64_t best = most;
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t groups = most; groups >= 1; --groups) {
    WgmmaAttention trial;
    trial.consumer_groups = groups;
    const Dim tiles = tile_count(tile, trial);
    if (!tiles.is_constant()) return most;
    const double time =
        std::ceil(static_cast<double>(tiles.constant()) / kMultiprocessors) * kTimes[groups];
    if (time < least) {
      least = time;
      best = groups;
    }
  }
  return best;
}

}  // namespace

std::optional<double> literal_value(const Scalar& scalar) {
  switch (scalar->kind) {
    case ScalarKind::Integer:
      return static_cast<double>(scalar->integer);
    case ScalarKind::Real:
      return scalar->real;
    case ScalarKind::Cast:
      return literal_value(scalar->args[0]);
    case ScalarKind::Unary: {
      const auto value = literal_value(scalar->args[0]);
      if (!value || scalar->unary != UnaryOp::Sqrt) return std::nullopt;
      return std::sqrt(*value);
    }
    case ScalarKind::Binary: {
      const auto a = literal_value(scalar->args[0]), b = literal_value(scalar->args[1]);
      if (!a || !b) return std::nullopt;
      if (scalar->binary == BinaryOp::Multiply) return *a * *b;
      if (scalar->binary == BinaryOp::Divide) return *a / *b;
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> linear_scale(const AttentionTile& tile, bool is_causal) {
  double scale = 1;
  for (const Scalar* at = &tile.score;;) {
    const Scalar& scalar = *at;
    if (scalar->kind == ScalarKind::Load) {
      const bool suits = scalar->id == tile.score_buffer && scale > 0 && std::isfinite(scale);
      return suits ? std::optional(scale) : std::nullopt;
    }
    if (scalar->kind == ScalarKind::Cast) {
      if (!is_float(scalar->dtype)) return std::nullopt;
      at = &scalar->args[0];
    } else if (scalar->kind == ScalarKind::Select && is_causal) {
      is_causal = false;
      at = &scalar->args[1];
    } else if (scalar->kind == ScalarKind::Binary &&
               (scalar->binary == BinaryOp::Multiply || scalar->binary == BinaryOp::Divide)) {
      const auto right = literal_value(scalar->args[1]);
      const auto left = right ? std::nullopt : literal_value(scalar->args[0]);
      if (!right && (!left || scalar->binary == BinaryOp::Divide)) return std::nullopt;
      scale =
          scalar->binary == BinaryOp::Divide ? scale / *right : scale * (right ? *right : *left);
      at = &scalar->args[right ? 0 : 1];
    } else {
      return std::nullopt;
    }
  }
}

bool has_mapped_operands(const AttentionTile& tile) {
  const std::int64_t size = tile.head_size;
  if ((size != 64 && size != 128 && size != 256) || tile.value_size != size) return false;
  constexpr std::int64_t kStored = 8;  // elements per thread and store
  const Statement& store = *tile.store;
  return fits_map(tile.k, tile.k_row, size, tile.outer) &&
         fits_map(tile.v, tile.v_row, size, tile.outer) && is_multiple_of(tile.y_row, kStored) &&
         starts_at_multiple(store.indices, store.view, kStored) &&
         std::ranges::all_of(tile.outer, [&](const Statement* loop) {
           return is_multiple_of(*distance(store, loop->id), kStored);
         });
}

std::optional<WgmmaAttention> match_wgmma_attention(const AttentionTile& tile,
                                                    const CudaTarget& target) {
  if (target.architecture != "sm_90a" || target.prefers_mma_sync || !has_mapped_operands(tile))
    return std::nullopt;
  const Dim queries = query_count(tile);
  if (queries.is_constant() && queries.constant() < kFewestQueries) return std::nullopt;
  const std::int64_t size = tile.head_size;
  WgmmaAttention made;
  made.last_key = last_visible_key(tile);
  made.scale = linear_scale(tile, made.last_key.has_value());
  // Lengths from which larger tiles are faster, measured on an H200.
  const auto is_long = [&](std::int64_t least) {
    return made.scale && tile.keys.is_constant() && tile.keys.constant() >= least;
  };
  const bool has_three_groups = size == 64 && is_long(made.last_key ? 4096 : 2048);
  made.consumer_groups = chosen_groups(tile, has_three_groups ? 3 : 2);
  if (size == 256) made.keys_per_block = 80;
  if (size == 128 && made.consumer_groups == 2 && !made.last_key && is_long(2048))
    made.keys_per_block = 176;
  return made;
}

Dim tile_count(const AttentionTile& tile, const WgmmaAttention& attention) {
  Dim tiles = ceil_div(query_count(tile), attention.queries_per_tile());
  for (const Statement* loop : tile.outer) tiles = tiles * loop->extent;
  return tiles;
}

std::uint32_t shared_bytes(const AttentionTile& tile, const WgmmaAttention& attention) {
  const std::int64_t rows =
      attention.queries_per_tile() + 2 * kAttentionStages * attention.keys_per_block;
  return static_cast<std::uint32_t>(rows * tile.head_size * kAttentionBytes + kStageAlignment);
}

}  // namespace tenon::codegen::cuda
