#pragma once

#include "codegen/nest_names.h"
#include "nests/contraction.h"

#include <string>

namespace tenon::codegen::cuda {

/// A contraction as a batch of row-major matrix products: y[m, n] = a[m, k] b[k, n].
struct GemmMatch {
  /// Reason for the refusal; empty for a match.
  std::string refusal;
  Dim batch = 1, m = 1, n = 1, k = 1;
  /// Loads of a and b; `is_swapped` if the nest has them in the other order.
  Scalar a, b;
  bool is_swapped = false;
  /// One product split into many small ones.
  bool is_split = false;
  bool is_a_transposed = false, is_b_transposed = false;
  /// Leading dimensions: elements from row to row.
  Dim a_leading, b_leading, y_leading;
  /// Batch strides: elements from matrix to matrix.
  Dim a_step, b_step, y_step;
};

/// Matches over any axes: loops with uniform strides are collapsed. `store` writes the sum.
GemmMatch match_gemm(const nests::Contraction& contraction, const Statement& store);

}  // namespace tenon::codegen::cuda
