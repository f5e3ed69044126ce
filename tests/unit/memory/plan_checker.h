#pragma once

#include "memory/problem.h"

#include <string>

namespace tenon::testing {

/// Simulates a plan on a memory of byte ranges, each of which records its content, and returns the
/// first fault; empty for a sound plan. Independent of the planner: it does not use lifetimes, and
/// checks only that the bytes of a value are intact when they are read.
std::string fault_in(const memory::Problem& problem, const memory::Plan& plan);

}  // namespace tenon::testing
