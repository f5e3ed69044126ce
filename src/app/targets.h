#pragma once

#include "target/target_spec.h"

#include <string>

namespace tenon::app {

/// Returns whether a `--target` is compiled. Throws Error (Usage) for an unknown target.
bool is_compiled_target(const std::string& target);
/// Combines `--target`, `--cpu` and `--precision`. Throws Error (Usage) if the result is not a
/// compilation target.
TargetSpec target_of(const std::string& target, const std::string& cpu,
                     const std::string& precision);

/// Returns whether value inspection of a target compiles. Throws Error for a device, which does not
/// support it.
bool is_observed_compiled(const std::string& target);

}  // namespace tenon::app
