#pragma once

#include "documents/document.h"

namespace tenon::documents::megengine {

/// Counts a Tenon node's operations as MegEngine does, summed over a group's members; 0 for
/// operators that it does not count.
CountedWork formula_of(const Graph& graph, NodeId node, const DimBindings& symbols);

}  // namespace tenon::documents::megengine
