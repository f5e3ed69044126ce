#pragma once

#include "ir/graph.h"

#include <string>
#include <vector>

namespace tenon::passes {

/// Names of the values to differentiate, summed, and of those to differentiate by.
struct GradientOptions {
  /// empty: every floating output
  std::vector<std::string> of = {};
  /// Values that provide the incoming gradients of `of`, one for each; empty: ones.
  std::vector<std::string> flows = {};
  /// empty: every floating input
  std::vector<std::string> by = {};
  /// Names the nodes of a gradient after the node they differentiate, as TensorFlow does:
  /// "gradients/NODE_grad".
  bool names_nodes = false;
};

/// Appends the gradient of the sum of the chosen values' elements by each value chosen to
/// differentiate by, as outputs `d_NAME`. A value without a gradient path gets zeros. Throws Error
/// (Usage) for unknown names, and (Unsupported) with the reason if an op on the path has no
/// gradient.
Graph with_gradients(Graph graph, const GradientOptions& options);

}  // namespace tenon::passes
