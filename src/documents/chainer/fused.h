#pragma once

#include "documents/chainer/training_graph.h"

#include <vector>

namespace tenon::documents::chainer {

/// A function of a training step with the work of its backward.
struct ChainerStep {
  TrainingGraph::FunctionStep step;
  /// multiply-adds of its forward pass
  double products = 0;
  /// number of product operands with a gradient
  double factor_gradients = 0;
  /// Readers read the operand at an offset; only the gradient is a separate tensor.
  bool is_view = false;
  /// Computes the gradients of the two operands one after the other.
  bool has_halves = false;
  /// Operands whose mask it applies to their gradient, element by element as it is written.
  std::vector<std::size_t> masked = {};
};

/// Fuses functions as a compiler would: a ReLU and a following dropout join the preceding
/// convolution, and their masks, derived from the result, are applied by the products that read it,
/// or by that convolution's backward; a pooling stores a one-byte index per result; a convolution
/// reads both operands of a concatenation directly, one of them cropped. The backward of a product
/// is two kernels, one per operand: the second may write its gradient over the operand, of which by
/// then only the mask is needed.
std::vector<ChainerStep> fused(const TrainingGraph& graph, std::vector<ChainerStep> steps);

}  // namespace tenon::documents::chainer
