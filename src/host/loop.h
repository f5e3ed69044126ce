#pragma once

#include "host/values.h"
#include "program/control.h"

#include <functional>
#include <string>

namespace tenon::inline host {

/// Executes a loop: passes scanned slices and carried values to each iteration and stacks its
/// outputs. Values of known extents are accessed in place.
void run_loop(const LoopStep& loop, const std::string& name, RunValues& values,
              const std::function<void()>& run_body);

}  // namespace tenon::inline host
