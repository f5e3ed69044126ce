#pragma once

#include <string>
#include <string_view>

namespace tenon {

/// Text as it may stand in HTML and in SVG, between tags and in quotes: nothing of it is markup,
/// and control characters that XML refuses are spaces.
std::string in_markup(std::string_view text);

}  // namespace tenon
