#pragma once

#include "ir/graph.h"

#include <string>
#include <vector>

namespace tenon {

/// Names of values: of which the gradient is taken, all added up, and by which.
struct GradientOptions {
  /// none: every floating output
  std::vector<std::string> of = {};
  /// Values that flow in as the gradients of `of`, one for each; none: ones.
  std::vector<std::string> flows = {};
  /// none: every floating input
  std::vector<std::string> by = {};
  /// Nodes of a gradient are called by the node that it is the gradient of, as TensorFlow calls
  /// them: "gradients/NODE_grad".
  bool names_nodes = false;
};

/// Appends the gradient of the chosen values, their elements summed, by each of the values chosen
/// to differentiate by: an output `d_NAME` each. A value that nothing flows to gets zeros. Throws
/// Error (Usage) for names that are none, and (Unsupported) with the reason where an op on the way
/// has no gradient.
Graph with_gradients(Graph graph, const GradientOptions& options);

}  // namespace tenon
