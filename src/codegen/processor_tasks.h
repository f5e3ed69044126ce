#pragma once

#include "codegen/task_writer.h"

#include <memory>

namespace tenon::codegen {

/// Creates the writer of CPU tasks: queries the target's candidates for each nest, and takes the
/// cheapest, or the choice of the options. `original_bound`: upper bound of the node ids of the
/// caller's graph.
std::unique_ptr<TaskWriter> processor_tasks(const CompileOptions& options, SharedKernels& shared,
                                            GraphScope& scope, std::size_t original_bound);

}  // namespace tenon::codegen
