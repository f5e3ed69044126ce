#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tenon::inline base {

/// Returns the position of a character for messages: "SOURCE, line 3, column 14", counted from 1.
std::string text_place(std::string_view source, std::string_view text, std::size_t position);

}  // namespace tenon::inline base
