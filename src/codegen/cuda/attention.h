#pragma once

#include "codegen/cuda/select.h"
#include "codegen/nest_names.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::codegen::cuda {

/// A nest that computes scaled-dot-product attention (QK^T, softmax, PV), lowered to one
/// FlashAttention kernel: online softmax on tensor cores, scores never leave registers. Points into
/// the nest.
struct AttentionTile {
  /// Loops around the tile, except the loop over queries.
  std::vector<const Statement*> outer;
  /// Null for a single query.
  const Statement* queries = nullptr;
  Dim keys;
  std::int64_t head_size = 0, value_size = 0;
  /// Element type of queries, keys, values and results.
  DType dtype = DType::F16;
  /// Loads of query, key and value.
  Scalar q, k, v;
  const Statement* store = nullptr;
  /// Strides from one row to the next, in elements.
  Dim q_row, k_row, v_row, y_row;
  /// Loops of the loads and the store inside a row; all start at 0.
  std::vector<std::size_t> inner_loops;
  /// The value that softmax receives, as an expression of the QK^T product (scale, mask).
  Scalar score;
  /// Buffer from which `score` loads the product.
  std::size_t score_buffer = 0;
  /// Loop over keys in `score`.
  std::size_t key_loop = 0;
  /// True if a fully masked row (all scores -inf) yields 0 instead of NaN.
  bool is_zero_if_masked = false;
};

/// Returns nullopt if the nest does not compute attention.
std::optional<AttentionTile> match_attention(const LoopNest& nest);

/// Number of queries in one tile's row axis.
Dim query_count(const AttentionTile& tile);

/// Fuses the nests of attention into one where a kernel computes the whole; of attention with a
/// single query, where the target has a split-KV kernel for it.
void fuse_attention(NestSequence& sequence, const CudaTarget& target);

/// Returns the last key that a query sees under a causal mask: the score masks all later keys, and
/// this key does not decrease from query to query.
std::optional<Scalar> last_visible_key(const AttentionTile& tile);

/// Structural equality of expressions, with loop `b` of `y` in the place of loop `a` of `x`.
bool is_same(const Scalar& x, const Scalar& y, std::size_t a, std::size_t b);

/// Queries per thread block.
inline constexpr std::int64_t kAttentionRows = 64;
inline constexpr unsigned kAttentionThreads = 128;

/// CUDA C++ functions that attention kernels call.
std::string_view attention_template();

}  // namespace tenon::codegen::cuda
