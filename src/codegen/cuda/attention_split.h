#pragma once

#include "codegen/cuda/attention.h"
#include "codegen/cuda/select.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace tenon::codegen::cuda {

/// Attention of up to 16 queries per head with split-KV (decode): the blocks of a cluster share the
/// keys of one head and combine their partial softmaxes in distributed shared memory.
struct SplitAttention {
  /// Queries of one head: grouped heads, or positions.
  std::int64_t rows = 1;
  /// Blocks per cluster.
  std::int64_t parts = 1;
  /// Tiles of `kSplitKeys` keys and values in flight.
  std::int64_t stages = 3;
  /// Set if the score is the product times this number.
  std::optional<double> scale;
  /// Last key that a query sees under a causal mask.
  std::optional<Scalar> last_key;
  /// Blocks per multiprocessor.
  unsigned resident_blocks = 2;
};
inline constexpr std::int64_t kSplitKeys = 64;
/// Four warps compute, one copies.
inline constexpr unsigned kSplitThreads = 160;

/// Matches attention with few queries and heads of 64, 128 or 256 elements on a target with TMA.
std::optional<SplitAttention> match_split_attention(const AttentionTile& tile,
                                                    const CudaTarget& target);

Dim block_count(const AttentionTile& tile, const SplitAttention& attention);
std::uint32_t shared_bytes(const AttentionTile& tile, const SplitAttention& attention);

/// CUDA C++ functions that these kernels call.
std::string_view split_attention_template();

}  // namespace tenon::codegen::cuda
