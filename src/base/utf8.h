#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tenon::inline base {

struct CodePoint {
  char32_t code = 0;
  /// 0 if the text does not start with valid UTF-8.
  std::size_t bytes = 0;
};

/// Decodes the first code point of a nonempty text.
CodePoint decode_utf8(std::string_view text);
void append_utf8(std::string& text, char32_t code);

}  // namespace tenon::inline base
