#pragma once

#include "documents/megengine/index.h"
#include "memory/problem.h"

namespace tenon::documents::megengine {

/// Builds the memory problem of a profiled run; Elemwise may overwrite an operand.
memory::Problem problem_of(const MegEngineProfile& profile, const Index& index,
                           std::string_view source);

}  // namespace tenon::documents::megengine
