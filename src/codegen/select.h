#pragma once

#include "codegen/compile.h"
#include "codegen/nest_names.h"
#include "tasks/task_list.h"

namespace tenon::codegen {

/// What is to be done for a graph all of whose nodes have kernels: builds their nests, fuses those
/// that hand each other what they make, and chooses what computes each. Throws Error of kind
/// Unsupported, listing every node that no kernel computes.
TaskList select(const Graph& graph, const CompileOptions& options);

}  // namespace tenon::codegen
