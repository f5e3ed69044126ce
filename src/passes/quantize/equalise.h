#pragma once

#include "ir/graph.h"

#include <string>
#include <utility>
#include <vector>

namespace tenon::passes {

/// Cross-layer equalization: balances the channel ranges between two convolutions so that one scale
/// suits all channels. Through ReLUs, max-pools and other homogeneous ops, a channel may be divided
/// by any positive number in the first convolution's weights and multiplied by it in the second's;
/// the number is the square root of the ratio of their largest weights. The graph's results change
/// by rounding only.
struct Equalised {
  Graph graph;
  /// convolutions, by the names of their results
  std::vector<std::pair<std::string, std::string>> pairs;
};
Equalised equalise_channels(Graph graph);

/// Correction of the bias of one product, per output.
struct BiasChange {
  /// name of its result
  std::string product;
  /// one per output
  std::vector<double> amounts;
};
/// Adds the amounts to existing biases, of convolutions or after matrix products. Returns the
/// number of products changed.
std::size_t change_biases(Graph& graph, const std::vector<BiasChange>& changes);

}  // namespace tenon::passes
