#pragma once

#include "codegen/compile.h"
#include "tasks/task_list.h"

#include <span>

namespace tenon::codegen {

/// Puts the tasks in an order in which clearly less is alive at once, where one is found: the
/// search of `memory::reordered`, which knows workspace and what may overwrite what, as the order
/// of the graph's nodes did not. Lists with control flow, operators' own functions or extents that
/// inputs decide stay as they are. Decisions keep pointing to their steps. What reads one of the
/// states stays before what makes it anew, so that both can lie in one place.
void order_tasks(TaskList& tasks, std::span<const StatePorts> states,
                 std::vector<Decision>* decisions);

}  // namespace tenon::codegen
