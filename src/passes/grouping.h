#pragma once

#include "ir/graph.h"
#include "passes/definition/remarks.h"

#include <vector>

namespace tenon::passes {

/// Partition of nodes into kernels.
struct Grouping {
  struct Group {
    /// in graph order
    std::vector<NodeId> nodes;
    /// index maps duplicated into this group, because several groups read through them
    std::vector<NodeId> copies;
  };
  /// In topological order. A node in no group is dropped: it lives on in copies, or has no reader.
  std::vector<Group> groups;
};

/// Returns the graph with a `fused` node for every group of several nodes. Scalar constants move
/// into the bodies that read them; other constants are operands like any value. A group stays
/// separate if its body would infer types other than the graph's.
Graph with_groups(Graph graph, const Grouping& grouping, Remarks* remarks);

}  // namespace tenon::passes
