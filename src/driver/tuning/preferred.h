#pragma once

#include "codegen/compile.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

using KernelChoice = std::function<std::optional<codegen::Selection>(const codegen::Decision&)>;

/// Chooses the first of the names that begins the name of a candidate which accepts, whatever was
/// estimated or timed; "library" is any library's. Where none accepts, `otherwise` chooses.
KernelChoice preferred_choice(std::vector<std::string> names, KernelChoice otherwise);

/// Throws Error (Usage), offering the nearest, where nothing that the options' target has begins
/// with such a name.
void require_candidate_names(const std::vector<std::string>& names,
                             const codegen::CompileOptions& options);

}  // namespace tenon
