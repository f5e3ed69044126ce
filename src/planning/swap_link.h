#pragma once

#include "memory/problem.h"
#include "program/program.h"

namespace tenon::planning {

/// Returns the offload link of a program. From host memory to a file, measured now.
/// From a GPU to pinned host memory: the cached measurement of `doctor`, or measured now and
/// cached; typical values for such GPUs without one.
memory::Link swap_link(const Program& program);

/// Permits offloading of values that are large enough to be worth it.
void allow_swaps(memory::Problem& problem, memory::Link link);

}  // namespace tenon::planning
