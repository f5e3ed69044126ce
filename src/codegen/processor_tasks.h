#pragma once

#include "codegen/task_writer.h"

#include <memory>

namespace tenon::codegen {

/// Creates the common task writer: asks the target for the candidates of each nest, and takes the
/// cheapest, or the choice of the options.
std::unique_ptr<TaskWriter> processor_tasks(const TaskContext& context);

}  // namespace tenon::codegen
