#pragma once

#include "ir/graph.h"
#include "ir/state_ports.h"
#include "memory/problem.h"

#include <vector>

namespace tenon::ordering {

/// What reads a state comes before what makes its next value, which then takes no memory of its
/// own: values without bytes between the two say so, and the items are put in such an order. Not
/// where a reader needs the next value itself.
void read_states_first(const Graph& graph, const std::vector<StatePorts>& states,
                       memory::Problem& problem);

}  // namespace tenon::ordering
