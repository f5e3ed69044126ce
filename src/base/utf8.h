#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tenon {

struct CodePoint {
  char32_t code = 0;
  /// 0: the text does not begin with UTF-8
  std::size_t bytes = 0;
};

/// The first code point of a text that is not empty.
CodePoint decode_utf8(std::string_view text);
void append_utf8(std::string& text, char32_t code);

}  // namespace tenon
