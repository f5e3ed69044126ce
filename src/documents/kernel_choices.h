#pragma once

#include "ir/graph.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon::documents {

/// Fastest kernels of a graph node, found by profiling. Stored in the graph's metadata.
struct KernelChoices {
  struct ProfiledKernel {
    /// Range of the symbol.
    std::int64_t lo = 0, hi = 0;
    std::string kernel;
  };
  /// Empty: one choice for all extents.
  std::string symbol;
  std::vector<ProfiledKernel> choices;
};
void note_choices(Graph& graph, ValueId result, const KernelChoices& choices);
std::optional<KernelChoices> noted_choices(const Graph& graph, ValueId result);

}  // namespace tenon::documents
