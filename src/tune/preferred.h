#pragma once

#include "codegen/compile.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon::tune {

using KernelChoice = std::function<std::optional<codegen::Selection>(const codegen::Decision&)>;

/// Chooses the first applicable candidate whose name starts with one of the names, in their order,
/// regardless of estimates and timings; "library" matches every library. Otherwise `otherwise`
/// chooses.
KernelChoice preferred_choice(std::vector<std::string> names, KernelChoice otherwise);

/// Throws Error (Usage) with the nearest name if no candidate of the target starts with a name.
void require_candidate_names(const std::vector<std::string>& names, const Target& target);

}  // namespace tenon::tune
