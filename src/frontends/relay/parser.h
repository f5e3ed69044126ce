#pragma once

#include "frontends/relay/ast.h"

#include <string_view>

namespace tenon::relay {

/// Reads a whole text. Throws Error with line and column: of kind Unsupported for parts of the
/// language that have no tensors in them (data types, matching, references).
Module parse_module(std::string_view text, std::string_view source);

}  // namespace tenon::relay
