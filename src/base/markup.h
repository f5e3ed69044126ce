#pragma once

#include <string>
#include <string_view>

namespace tenon::inline base {

/// Escapes text for HTML and SVG, in content and in attributes; control characters that XML forbids
/// become spaces.
std::string in_markup(std::string_view text);

}  // namespace tenon::inline base
