#pragma once

#include "passes/grouping.h"
#include "target/facts.h"

namespace tenon::fusing {

/// Chooses what runs together: epilogues of contractions first, then what folds rows, then windows,
/// then tile-and-fuse and index maps, then siblings. Kernels have at most `max_nodes` nodes. See
/// docs/optimiser/fuse.md.
Grouping plan_groups(const Graph& graph, const TargetFacts& target, std::size_t max_nodes,
                     Remarks* remarks);

/// Apache TVM's Relay rule, FuseOps: by kinds of ops and post-dominators, in three phases.
Grouping relay_groups(const Graph& graph, std::size_t max_depth, Remarks* remarks);

}  // namespace tenon::fusing
