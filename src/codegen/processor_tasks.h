#pragma once

#include "codegen/task_writer.h"

#include <memory>

namespace tenon::codegen {

/// Kernels for the processor: asks its target what could compute each nest, and takes what is
/// cheapest or what the options choose. `original_bound`: ids of nodes that callers know are below.
std::unique_ptr<TaskWriter> processor_tasks(const CompileOptions& options, SharedKernels& shared,
                                            GraphScope& scope, std::size_t original_bound);

}  // namespace tenon::codegen
