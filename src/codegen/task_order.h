#pragma once

#include "codegen/compile.h"
#include "tasks/task_list.h"

#include <span>

namespace tenon::codegen {

/// Reorders the tasks if that lowers peak memory clearly, by the search of `memory::reordered`,
/// which includes workspace and in-place reuse, unlike the order of the graph's nodes. Lists with
/// control flow, host operators or symbolic extents stay unchanged. Updates the steps of decisions.
/// Readers of a state that may be overwritten stay before its writer.
void order_tasks(TaskList& tasks, std::span<Decision> decisions);

}  // namespace tenon::codegen
