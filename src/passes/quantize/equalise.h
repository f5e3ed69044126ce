#pragma once

#include "ir/graph.h"

#include <string>
#include <utility>
#include <vector>

namespace tenon {

/// Gives channels between two convolutions similar sizes, so that one scale suits them all: where
/// only relus, max-pools and the like stand between, a channel may be divided by any positive
/// number in the first's weights and multiplied by it in the second's. The number is the root of
/// the quotient of their largest weights. The graph computes the same but for rounding.
struct Equalised {
  Graph graph;
  /// convolutions, by the names of results
  std::vector<std::pair<std::string, std::string>> pairs;
};
Equalised equalise_channels(Graph graph);

/// What is to be added to each output of a product.
struct BiasChange {
  /// by the name of its result
  std::string product;
  /// along its outputs
  std::vector<double> amounts;
};
/// Adds the amounts to biases that are there, of convolutions or behind matrix products; gives how
/// many products took them.
std::size_t change_biases(Graph& graph, const std::vector<BiasChange>& changes);

}  // namespace tenon
