#pragma once

#include "codegen/task_writer.h"

#include <memory>

namespace tenon::codegen::cuda {

/// Kernels for the device of the options: loops bound to blocks and threads, and calls of
/// libraries.
std::unique_ptr<TaskWriter> device_tasks(const CompileOptions& options, SharedKernels& shared,
                                         GraphScope& scope);

}  // namespace tenon::codegen::cuda
