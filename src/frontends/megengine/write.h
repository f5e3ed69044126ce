#pragma once

#include "frontends/megengine/tables.h"
#include "ir/graph.h"

namespace tenon::megengine {

/// What MegEngine would have put down of this graph before a run: no times, no addresses. Symbols
/// take the least value of their range (at least 1), as a profile is of one run. Throws an Error of
/// kind Unsupported for values that are no tensors.
Profile write_graph(const Graph& graph);

}  // namespace tenon::megengine
