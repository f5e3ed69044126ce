#pragma once

#include "codegen/cuda/attention.h"
#include "codegen/cuda/select.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace tenon::codegen::cuda {

/// Attention on wgmma tiles after FlashAttention-3: a persistent kernel whose producer warpgroup
/// copies keys and values by TMA while consumer warpgroups of 64 queries each alternate between
/// matrix products and online softmax.
struct WgmmaAttention {
  std::int64_t consumer_groups = 2;
  /// Keys and values per pipeline stage.
  std::int64_t keys_per_block = 128;
  /// Set if the score is the product times this number, apart from a causal mask.
  std::optional<double> scale;
  /// Last key that a query sees under a causal mask.
  std::optional<Scalar> last_key;

  std::int64_t queries_per_tile() const { return consumer_groups * 64; }
  unsigned threads() const { return static_cast<unsigned>(consumer_groups + 1) * 128; }
};

/// Returns the factor of a score that is the product times a positive number, below a causal mask
/// if there is one.
std::optional<double> linear_scale(const AttentionTile& tile, bool is_causal);
/// Returns the value of an expression of literals.
std::optional<double> literal_value(const Scalar& scalar);
/// Returns whether heads have 64, 128 or 256 elements, TMA can copy keys and values by 2-D tensor
/// maps, and results can be stored in vectors of 16 bytes.
bool has_mapped_operands(const AttentionTile& tile);

/// Matches attention with heads of 64, 128 or 256 elements on a target with wgmma, and chooses the
/// tile. Returns nullopt for few queries and without `has_mapped_operands`.
std::optional<WgmmaAttention> match_wgmma_attention(const AttentionTile& tile,
                                                    const CudaTarget& target);

Dim tile_count(const AttentionTile& tile, const WgmmaAttention& attention);
std::uint32_t shared_bytes(const AttentionTile& tile, const WgmmaAttention& attention);

/// CUDA C++ type of the work of a tile.
std::string_view attention_span_template();
/// CUDA C++ functions that these kernels call.
std::string_view wgmma_attention_template();

}  // namespace tenon::codegen::cuda
