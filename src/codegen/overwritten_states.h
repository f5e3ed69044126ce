#pragma once

#include "tasks/task_list.h"

namespace tenon::codegen {

/// Returns whether the output of a state may overwrite its input, judged by the writing tasks: they
/// do not read the input, or read each element before they write it. Later readers of the input are
/// checked by `is_read_first` (program/in_place.h).
bool may_overwrite(const TaskList& tasks, const Program::State& state);

}  // namespace tenon::codegen
