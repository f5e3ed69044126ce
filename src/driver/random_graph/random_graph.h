#pragma once

#include "ir/graph.h"

#include <cstdint>
#include <string_view>

namespace tenon {

struct RandomGraphOptions {
  std::uint64_t seed = 0;
  /// about; dead nodes go
  int node_count = 12;
  /// starts with a convolution of many channels
  bool is_wide = false;
};

/// A small valid graph of random operators, made of what the operators' own definitions allow:
/// their operands, attributes, dynamic attributes and optional results; `infer` and a run on random
/// inputs decide what stays. Motifs that passes look for (chains of transposes, residual adds,
/// neutral elements, …) are mixed in. The same seed gives the same graph.
Graph random_graph(const RandomGraphOptions& options);

/// The same from text: "7", "7?nodes=30" or "7?nodes=3,wide=1". Throws an Error (Usage) for other
/// text.
Graph random_graph(std::string_view spec);

}  // namespace tenon
