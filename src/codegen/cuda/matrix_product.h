#pragma once

#include "codegen/nest_names.h"
#include "nests/contraction.h"

#include <string>

namespace tenon::codegen::cuda {

/// A sum of products as a batch of matrix products, row-major: y[m, n] = a[m, k] b[k, n].
struct MatrixProduct {
  /// why it is none; empty where it is
  std::string refusal;
  Dim batch = 1, m = 1, n = 1, k = 1;
  /// loads; `is_swapped`: the nest has them the other way round
  Scalar a, b;
  bool is_swapped = false;
  /// one in many small ones
  bool is_split = false;
  bool is_a_transposed = false, is_b_transposed = false;
  /// elements from row to row
  Dim a_leading, b_leading, y_leading;
  /// … from matrix to matrix
  Dim a_step, b_step, y_step;
};

/// Whatever axes it comes from: loops that step evenly run as one. `store`: where the sum goes.
MatrixProduct matrix_product(const nests::Contraction& sum, const Statement& store);

}  // namespace tenon::codegen::cuda
