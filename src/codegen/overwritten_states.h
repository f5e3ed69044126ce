#pragma once

#include "ir/state_ports.h"
#include "tasks/task_list.h"

#include <span>
#include <vector>

namespace tenon::codegen {

/// Returns the states whose output may overwrite their input, judged by the writing tasks: they do
/// not read the input, or read each element before they write it. Later readers of the input are
/// checked by `is_read_first` (program/in_place.h).
std::vector<StatePorts> overwritten_states(const TaskList& tasks,
                                           std::span<const StatePorts> states);

/// Returns the intersection.
std::vector<StatePorts> common_states(std::vector<StatePorts> states,
                                      std::span<const StatePorts> others);

}  // namespace tenon::codegen
