#pragma once

#include "codegen/cuda/select.h"
#include "codegen/task_writer.h"

#include <memory>

namespace tenon::codegen::cuda {

/// Writes tasks for a GPU: loops bound to blocks and threads, tensor-core kernels, and library
/// calls, chosen by the cost model or by the options.
std::unique_ptr<TaskWriter> device_tasks(const TaskContext& context, const CudaTarget& device);

}  // namespace tenon::codegen::cuda
