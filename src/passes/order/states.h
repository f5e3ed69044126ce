#pragma once

#include "ir/graph.h"
#include "ir/state_ports.h"
#include "memory/problem.h"

#include <vector>

namespace tenon::passes::ordering {

/// Orders the readers of a state before the producer of its next value, so that the update happens
/// in place and needs no memory of its own. Expressed by zero-byte dependencies between the two.
/// Skips a state with a reader that needs the next value itself.
void read_states_first(const Graph& graph, const std::vector<StatePorts>& states,
                       memory::Problem& problem);

}  // namespace tenon::passes::ordering
