#include "base/utf8.h"

namespace tenon::inline base {

CodePoint decode_utf8(std::string_view text) {
  const auto byte = [&](std::size_t k) { return char32_t{static_cast<unsigned char>(text[k])}; };
  const std::size_t bytes = byte(0) < 0x80       ? 1
                            : byte(0) >> 5 == 6  ? 2
                            : byte(0) >> 4 == 14 ? 3
                            : byte(0) >> 3 == 30 ? 4
                                                 : 0;
  if (bytes == 0 || bytes > text.size()) return {};
  CodePoint result{bytes == 1 ? byte(0) : byte(0) & (0x7FU >> bytes), bytes};
  for (std::size_t k = 1; k < bytes; ++k) {
    if (byte(k) >> 6 != 2) return {};
    result.code = result.code << 6 | (byte(k) & 0x3FU);
  }
  return result;
}

void append_utf8(std::string& text, char32_t code) {
  const unsigned following = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  const unsigned mark = following == 0 ? 0 : 0xF00U >> (following + 1) & 0xFFU;
  text += static_cast<char>(mark | code >> 6 * following);
  for (unsigned k = following; k-- > 0;) text += static_cast<char>(0x80U | (code >> 6 * k & 0x3FU));
}

}  // namespace tenon::inline base
