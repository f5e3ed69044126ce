#pragma once

#include "passes/grouping.h"
#include "target/facts.h"

namespace tenon::passes::fusing {

/// Chooses the nodes that run as one kernel: epilogues of contractions first, then row reductions,
/// windows, tile-and-fuse, index maps, and siblings. Kernels have at most `max_nodes` nodes. See
/// docs/optimiser/fuse.md.
Grouping plan_groups(const Graph& graph, const TargetFacts& target, std::size_t max_nodes,
                     Remarks* remarks);

/// FuseOps, the rule of Apache TVM's Relay: by kinds of ops and post-dominators, in three phases.
Grouping relay_groups(const Graph& graph, std::size_t max_depth, Remarks* remarks);

}  // namespace tenon::passes::fusing
