#include "ir/text_cursor.h"

#include "base/error.h"
#include "base/text.h"
#include "ir/letters.h"

namespace tenon::inline ir {

namespace {

bool starts_name(char c) { return is_letter(c) || c == '_'; }

std::string shortened(std::string_view text) {
  constexpr std::size_t kShown = 80;
  return text.size() <= kShown ? std::string(text) : std::string(text.substr(0, kShown)) + "…";
}

}  // namespace

void TextCursor::skip_space() {
  while (position < text.size() && std::string_view(" \t\r\n").find(text[position]) != text.npos) {
    ++position;
  }
}

bool TextCursor::is_at_end() {
  skip_space();
  return position == text.size();
}

char TextCursor::peek() { return is_at_end() ? '\0' : text[position]; }

bool TextCursor::accept(char c) {
  if (is_at_end() || text[position] != c) return false;
  ++position;
  return true;
}

void TextCursor::expect(char c) {
  if (!accept(c)) fail(concat("'", std::string_view(&c, 1), "'"));
}

std::string_view TextCursor::accept_identifier() {
  if (!starts_name(peek())) return {};
  const std::size_t begin = position;
  while (position < text.size() && (starts_name(text[position]) || is_digit(text[position]))) {
    ++position;
  }
  return text.substr(begin, position - begin);
}

void TextCursor::fail(std::string_view expected) {
  skip_space();
  throw Error(concat("cannot read ", subject, " '", shortened(text), "'"))
      .at("column ", position + 1)
      .expected(expected)
      .got(position == text.size() ? "the end of the text"
                                   : quote(shortened(text.substr(position, 20))));
}

}  // namespace tenon::inline ir
