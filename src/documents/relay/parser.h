#pragma once

#include "documents/relay/ast.h"

#include <string_view>

namespace tenon::documents::relay {

/// Parses a whole text. Throws Error with line and column: of kind Unsupported for language
/// features without tensors (data types, matching, references).
RelayModule parse_module(std::string_view text, std::string_view source);

}  // namespace tenon::documents::relay
