#pragma once

#include "documents/aitemplate/read_dump.h"
#include "documents/findings.h"

namespace tenon::documents::aitemplate {

/// Recomputes the claims of a dump: shapes, depths, order, names, flags, accessors, kernel
/// conditions, and references between tensors and operators.
Findings check_dump(const Dump& dump, const SourceMap& places);

}  // namespace tenon::documents::aitemplate
