#pragma once

#include "ir/dim.h"
#include "program/extent.h"

#include <map>
#include <string>

namespace tenon::codegen {

/// A dim as programs have it, with symbols by number. Throws Error of kind Unsupported for a symbol
/// that no input tells.
Extent extent_of(const Dim& dim, const std::map<std::string, std::size_t>& symbols);

}  // namespace tenon::codegen
