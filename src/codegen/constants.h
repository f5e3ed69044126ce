#pragma once

#include "program/program.h"
#include "tasks/task_list.h"

namespace tenon::codegen {

/// Gives the constants that steps of a program read their places, and writes them in the forms that
/// its tasks ask for. Throws Error (OutOfMemory).
void place_constants(const TaskList& tasks, Program& program);

}  // namespace tenon::codegen
