#pragma once

#include "ir/graph.h"
#include "memory/problem.h"

namespace tenon::passes::ordering {

/// Orders the readers of a state that may be overwritten before the producer of its next value, so
/// that the update happens in place and needs no memory of its own. Expressed by zero-byte
/// dependencies between the two. Skips a state with a reader that needs the next value itself.
void read_states_first(const Graph& graph, memory::Problem& problem);

}  // namespace tenon::passes::ordering
