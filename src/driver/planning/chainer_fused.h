#pragma once

#include "frontends/chainer/training_graph.h"

#include <vector>

namespace tenon {

/// A function of a training step, and what its backward computes.
struct ChainerStep {
  chainer::TrainingGraph::Step step;
  /// that its forward half sums up
  double products = 0;
  /// of how many factors of its products there is a gradient
  double factor_gradients = 0;
  /// Readers see the operand itself, with an offset; only the gradient is a tensor of its own.
  bool is_view = false;
  /// The gradients of the two factors are computed one after the other.
  bool has_halves = false;
  /// Of what it reads: tensors whose mask it applies to the gradient that it makes of them, each
  /// element where it is written.
  std::vector<std::size_t> masked = {};
};

/// The steps as a compiler runs them that fuses: a ReLU, and a dropout behind it, belong to the
/// convolution before, and their masks, which the result tells, are applied by the products that
/// read it, or else by that convolution's backward; a pooling keeps an index of a byte for each
/// result; a convolution reads both sources of a concatenation where they lie, one of them cropped.
/// The backward of a product is two kernels, one for each factor: the second may write the gradient
/// of what it reads in that one's place, which by then only gives it its mask.
std::vector<ChainerStep> fused(const chainer::TrainingGraph& graph, std::vector<ChainerStep> steps);

}  // namespace tenon
