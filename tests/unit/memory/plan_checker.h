#pragma once

#include "memory/problem.h"

#include <string>

namespace tenon::testing {

/// Plays a plan over a memory of byte ranges, each of which remembers whose content it holds, and
/// says the first thing that goes wrong; nothing where all is well. Shares no code with the
/// planner: what a value's lifetime is never comes up, only whether its bytes are still there when
/// they are read.
std::string fault_in(const memory::Problem& problem, const memory::Plan& plan);

}  // namespace tenon::testing
