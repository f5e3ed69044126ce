#pragma once

#include "program/program.h"
#include "tasks/task_list.h"

namespace tenon::codegen {

/// Places the constants that the program's steps read, and writes them in the packed forms that its
/// tasks use. Throws Error (OutOfMemory).
void place_constants(const TaskList& tasks, Program& program);

}  // namespace tenon::codegen
