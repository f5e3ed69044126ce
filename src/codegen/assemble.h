#pragma once

#include "program/program.h"
#include "tasks/task_list.h"

namespace tenon::codegen {

/// Builds a program, except for its code, from a task list: one step per call, constants in the
/// packed forms that calls read, buffers in an arena with disjoint memory for overlapping
/// lifetimes. Results overwrite operands in place where a task allows it and the operand has no
/// later use. Throws Error (OutOfMemory).
Program assemble(const TaskList& tasks, const std::string& target_name);

}  // namespace tenon::codegen
