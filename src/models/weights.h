#pragma once

#include "ir/graph.h"
#include "program/program.h"

#include <string>
#include <utility>
#include <vector>

namespace tenon::models {

/// A graph whose weights are additional inputs after its own, so that neither passes nor packing
/// depend on their elements, together with the weights.
struct OpenWeights {
  Graph graph;
  std::vector<std::pair<std::string, Constant>> weights;
};
/// `names`: of constants; empty: every floating constant of rank 1 or more. Throws Error (Usage)
/// with the nearest name for an unknown one.
OpenWeights open_weights(Graph graph, const std::vector<std::string>& names);

/// Turns the weight inputs of such a graph's program into swappable constants
/// (`Program::Buffer::is_weight`). Throws Error (Unsupported) if it is not kernel-only.
Program close_weights(Program program, const OpenWeights& opened);

}  // namespace tenon::models
