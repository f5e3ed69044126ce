#pragma once

#include "host/values.h"
#include "program/control.h"

#include <functional>
#include <string>

namespace tenon {

/// Runs a loop: gives every run of the body its part, hands on what it carries, puts side by side
/// what it gives. Values of known extents are read and written where they stay.
void run_loop(const LoopStep& loop, const std::string& name, RunValues& values,
              const std::function<void()>& run_body);

}  // namespace tenon
