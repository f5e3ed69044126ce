#pragma once

#include "ir/graph.h"
#include "passes/remarks.h"

#include <vector>

namespace tenon {

/// Which nodes run as one kernel.
struct Grouping {
  struct Group {
    /// in the graph's order
    std::vector<NodeId> nodes;
    /// run here as well: index maps that several groups read through
    std::vector<NodeId> copies;
  };
  /// In an order in which each group runs after those it reads. A node in no group is left out: it
  /// lives on in copies, or nobody reads it.
  std::vector<Group> groups;
};

/// The graph with a `fused` node for every group of several nodes. Constants that are one number
/// move into the bodies that read them; other constants are operands like any value. A group whose
/// body would not have the types that the graph has stays apart.
Graph with_groups(Graph graph, const Grouping& grouping, Remarks* remarks);

}  // namespace tenon
