#pragma once

#include "ir/dim.h"
#include "program/extent.h"

#include <map>
#include <string>

namespace tenon::codegen {

/// Converts a dim to a program's extent with numbered symbols. Throws Error of kind Unsupported for
/// a symbol that no input binds.
Extent extent_of(const Dim& dim, const std::map<std::string, std::size_t>& symbols);

}  // namespace tenon::codegen
