#pragma once

#include "codegen/nest_names.h"
#include "nests/contraction.h"

#include <string>

namespace tenon::codegen::cuda {

/// A sum of products as a batch of matrix products, row-major: y[m, n] = a[m, k] b[k, n].
struct MatrixProduct {
  std::string refusal;  ///< why it is none; empty where it is
  Dim batch = 1, m = 1, n = 1, k = 1;
  Scalar a, b;  ///< loads; `is_swapped`: the nest has them the other way round
  bool is_swapped = false;
  bool is_split = false;  ///< one in many small ones
  bool is_a_transposed = false, is_b_transposed = false;
  Dim a_leading, b_leading, y_leading;  ///< elements from row to row
  Dim a_step, b_step, y_step;           ///< … from matrix to matrix
};

/// Whatever axes it comes from: loops that step evenly run as one. `store`: where the sum goes.
MatrixProduct matrix_product(const nests::Contraction& sum, const Statement& store);

}  // namespace tenon::codegen::cuda
