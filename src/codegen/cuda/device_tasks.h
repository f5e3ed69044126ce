#pragma once

#include "codegen/task_writer.h"

#include <memory>

namespace tenon::codegen::cuda {

/// Kernels for the device of the options: loops bound to blocks and threads, kernels on tensor
/// cores and calls of libraries, whichever is thought to be fastest or the options choose.
/// `original_bound`: ids of nodes that callers know are below.
std::unique_ptr<TaskWriter> device_tasks(const CompileOptions& options, SharedKernels& shared,
                                         GraphScope& scope, std::size_t original_bound);

}  // namespace tenon::codegen::cuda
