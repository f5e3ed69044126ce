#pragma once

#include "tasks/task_list.h"

namespace tenon::codegen {

/// Kernels that are many and differ in numbers alone (the parts of a wide concat or split) become
/// one that is given them: each has to be compiled, and takes room.
void share_general_kernels(TaskList& list);

}  // namespace tenon::codegen
