#pragma once

#include "ir/graph.h"
#include "program/program.h"

#include <string>
#include <utility>
#include <vector>

namespace tenon {

/// A graph whose weights come in as inputs, behind its own, so that no pass and no packing builds
/// on their elements; and what they are.
struct OpenWeights {
  Graph graph;
  std::vector<std::pair<std::string, Constant>> weights;
};
/// `names`: of constants; empty: every floating constant of rank 1 or more. Throws Error (Usage)
/// for a name that is none, offering the nearest.
OpenWeights open_weights(Graph graph, const std::vector<std::string>& names);

/// The program of such a graph with the weights as constants that can be swapped
/// (`Program::Buffer::is_weight`). Throws Error (Unsupported) where it is more than kernels.
Program close_weights(Program program, const OpenWeights& opened);

}  // namespace tenon
