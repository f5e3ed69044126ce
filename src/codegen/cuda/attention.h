#pragma once

#include "codegen/nest_names.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::codegen::cuda {

/// A nest that computes attention: for each query the products with all keys, their softmax, and
/// the sum of values by it. One kernel does it on tensor cores without writing the scores down.
/// Points into the nest.
struct AttentionTile {
  /// loops around it, but for that over queries
  std::vector<const Statement*> outer;
  const Statement* queries = nullptr;
  Dim keys;
  std::int64_t head_size = 0, value_size = 0;
  /// of queries, keys, values and results
  DType dtype = DType::F16;
  /// loads
  Scalar q, k, v;
  const Statement* store = nullptr;
  /// elements from one to the next
  Dim q_row, k_row, v_row, y_row;
  /// Loops of the loads and the store that are those inside a row: all begin at 0.
  std::vector<std::size_t> inner_loops;
  /// what becomes of a product before the softmax
  Scalar score;
  /// where products are read from in it
  std::size_t score_buffer = 0;
  /// of the score
  std::size_t key_loop = 0;
  /// a row without any score above -inf is 0, else NaN
  bool is_zero_if_masked = false;
};

/// Nothing where the nest is anything else.
std::optional<AttentionTile> match_attention(const LoopNest& nest);

/// Puts the nests of attention together, where a kernel computes the whole.
void join_attention(NestSequence& sequence);

/// Whether two numbers are the same, with loop `b` of the second for loop `a` of the first.
bool is_same(const Scalar& x, const Scalar& y, std::size_t a, std::size_t b);

/// So many queries are one block's.
inline constexpr std::int64_t kAttentionRows = 64;
inline constexpr unsigned kAttentionThreads = 128;

/// CUDA C++ that kernels of attention call.
std::string_view attention_template();

}  // namespace tenon::codegen::cuda
