#pragma once

#include "ir/state_ports.h"
#include "tasks/task_list.h"

#include <span>
#include <vector>

namespace tenon::codegen {

/// Of these states, those whose output may be given the memory of their input as far as what writes
/// it is concerned: it reads nothing of the input, or each element where it writes it, before. That
/// nobody reads the input later is for `is_read_first` (program/in_place.h) to say.
std::vector<StatePorts> overwritten_states(const TaskList& tasks,
                                           std::span<const StatePorts> states);

/// Those that are among both.
std::vector<StatePorts> common_states(std::vector<StatePorts> states,
                                      std::span<const StatePorts> others);

}  // namespace tenon::codegen
