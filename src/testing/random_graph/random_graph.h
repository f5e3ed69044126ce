#pragma once

#include "ir/graph.h"

#include <cstdint>
#include <string_view>

namespace tenon::testing {

struct RandomGraphOptions {
  std::uint64_t seed = 0;
  /// approximate; dead nodes are removed
  int node_count = 12;
  /// starts with a convolution of many channels
  bool is_wide = false;
};

/// Generates a small valid graph of random operators from the operators' definitions: operands,
/// attributes, dynamic attributes and optional results. Keeps nodes that pass `infer` and a run on
/// random inputs. Includes motifs that passes match (chains of transposes, residual adds, neutral
/// elements, …). The same seed gives the same graph.
Graph random_graph(const RandomGraphOptions& options);

/// Parses "7", "7?nodes=30" or "7?nodes=3,wide=1". Throws Error (Usage) for other text.
Graph random_graph(std::string_view spec);

}  // namespace tenon::testing
