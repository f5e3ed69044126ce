#pragma once

#include "codegen/task_writer.h"

#include <memory>

namespace tenon::codegen::cuda {

/// Writes tasks for the device in the options: loops bound to blocks and threads, tensor-core
/// kernels, and library calls, chosen by the cost model or by the options. `original_bound`: ids of
/// nodes known to the caller lie below it.
std::unique_ptr<TaskWriter> device_tasks(const CompileOptions& options, SharedKernels& shared,
                                         GraphScope& scope, std::size_t original_bound);

}  // namespace tenon::codegen::cuda
