#pragma once

#include "tasks/task_list.h"

namespace tenon::codegen {

/// Merges large families of kernels that differ only in numbers, such as the parts of a wide concat
/// or split, into one kernel with run-time extents: fewer kernels compile faster and take less
/// space.
void share_general_kernels(TaskList& list);

}  // namespace tenon::codegen
