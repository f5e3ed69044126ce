#pragma once

#include "codegen/compile.h"
#include "codegen/nest_names.h"
#include "tasks/task_list.h"

namespace tenon::codegen {

/// Selected tasks, and the decisions if they are recorded.
struct Selected {
  TaskList tasks;
  std::vector<Decision> decisions;
};

/// Kernel selection: builds the nests of all nodes, fuses producers with consumers and chooses a
/// candidate for each nest. Nodes without kernels become host tasks; control flow becomes tasks
/// with bodies.
Selected select(const Graph& graph, const CompileOptions& options);

}  // namespace tenon::codegen
