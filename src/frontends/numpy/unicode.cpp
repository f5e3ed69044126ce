#include "frontends/numpy/unicode.h"

namespace tenon::numpy {
namespace {

bool is_character(std::uint32_t code) {
  return code < 0xd800 || (code >= 0xe000 && code <= 0x10ffff);
}

}  // namespace

void append_utf8(std::string& text, std::uint32_t character) {
  if (!is_character(character)) character = 0xfffd;
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  const auto add_rest = [&](int shift) { add(0x80 | (character >> shift & 0x3f)); };
  if (character < 0x80) {
    add(character);
  } else if (character < 0x800) {
    add(0xc0 | character >> 6), add_rest(0);
  } else if (character < 0x10000) {
    add(0xe0 | character >> 12), add_rest(6), add_rest(0);
  } else {
    add(0xf0 | character >> 18), add_rest(12), add_rest(6), add_rest(0);
  }
}

std::optional<std::u32string> decode_utf8(std::string_view text) {
  std::u32string characters;
  for (std::size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at++]);
    int following = 0;
    std::uint32_t code = first, least = 0;
    if (first >= 0xf0 && first < 0xf8) {
      following = 3, code = first & 0x07, least = 0x10000;
    } else if (first >= 0xe0 && first < 0xf0) {
      following = 2, code = first & 0x0f, least = 0x800;
    } else if (first >= 0xc0 && first < 0xe0) {
      following = 1, code = first & 0x1f, least = 0x80;
    } else if (first >= 0x80) {
      return std::nullopt;
    }
    for (; following > 0; --following, ++at) {
      if (at >= text.size() || (text[at] & 0xc0) != 0x80) return std::nullopt;
      code = code << 6 | (static_cast<unsigned char>(text[at]) & 0x3f);
    }
    if (code < least || !is_character(code)) return std::nullopt;
    characters += static_cast<char32_t>(code);
  }
  return characters;
}

}  // namespace tenon::numpy
