#pragma once

#include "codegen/compile.h"
#include "codegen/nest_names.h"
#include "tasks/task_list.h"

namespace tenon::codegen {

/// What is to be done for a graph: builds the nests of its nodes, fuses those that hand each other
/// what they make, and chooses what computes each; nodes that no kernel computes become tasks that
/// call their operator, and control flow tasks with bodies.
TaskList select(const Graph& graph, const CompileOptions& options);

}  // namespace tenon::codegen
