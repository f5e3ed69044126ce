#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon::numpy {

/// Appends a character as UTF-8; what is none becomes U+FFFD.
void append_utf8(std::string& text, std::uint32_t character);
/// The characters of a UTF-8 text, or nothing if it is not one.
std::optional<std::u32string> decode_utf8(std::string_view text);

}  // namespace tenon::numpy
