#pragma once

#include "program/program.h"
#include "tasks/task_list.h"

namespace tenon::codegen {

/// A list of tasks as a program, but for its code: every call a step, constants in the forms that
/// calls read, buffers in the arena where they do not disturb each other. A result that may share
/// the memory of an operand does, where nobody needs that any more. Throws Error (OutOfMemory).
Program assemble(const TaskList& tasks, const std::string& target_name);

}  // namespace tenon::codegen
