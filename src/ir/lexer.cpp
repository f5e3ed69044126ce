#include "ir/lexer.h"

#include "base/text.h"
#include "base/text_place.h"
#include "ir/letters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace tenon::inline ir {
namespace {

constexpr int kMaxBracketDepth = 64;

constexpr std::array<bool, 256> kNameChars = [] {
  std::array<bool, 256> is_in{};
  for (char c = 'a'; c <= 'z'; ++c) is_in[static_cast<unsigned char>(c)] = true;
  for (char c = 'A'; c <= 'Z'; ++c) is_in[static_cast<unsigned char>(c)] = true;
  for (char c = '0'; c <= '9'; ++c) is_in[static_cast<unsigned char>(c)] = true;
  for (char c : {'_', '.', '/', '$', '@', '-'}) is_in[static_cast<unsigned char>(c)] = true;
  return is_in;
}();

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

bool is_name_char(char c) { return kNameChars[static_cast<unsigned char>(c)]; }

void Lexer::skip_space() {
  while (at_ < text_.size()) {
    if (is_space(text_[at_])) {
      ++at_;
    } else if (text_[at_] == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

std::size_t Lexer::position() {
  skip_space();
  return at_;
}

char Lexer::peek() {
  skip_space();
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool Lexer::take(char c) {
  skip_space();
  if (at_ == text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

void Lexer::expect(char c, std::string_view where) {
  if (!take(c)) throw error_here(concat("expected '", std::string_view(&c, 1), "' ", where));
}

std::string_view Lexer::word() {
  skip_space();
  const std::size_t start = at_;
  while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
  return text_.substr(start, at_ - start);
}

bool Lexer::take_word(std::string_view wanted) {
  const std::size_t start = position();
  if (word() == wanted) return true;
  at_ = start;
  return false;
}

std::string Lexer::name(std::string_view what) {
  if (peek() == '"') return text(what);
  const std::string_view bare = word();
  if (bare.empty()) throw error_here(concat("expected ", what));
  return std::string(bare);
}

std::string Lexer::text(std::string_view what) {
  const std::size_t start = position();
  if (!take('"')) throw error_here(concat("expected ", what, " in quotes"));
  std::string found;
  while (true) {
    const std::size_t stop = text_.find_first_of("\"\\\n", at_);
    if (stop == std::string_view::npos || text_[stop] == '\n') {
      throw error_at(start, "the quote is not closed");
    }
    found += text_.substr(at_, stop - at_);
    at_ = stop + 1;
    if (text_[stop] == '"') return found;
    const char escape = at_ < text_.size() ? text_[at_++] : '\0';
    if (escape == 'n') {
      found += '\n';
    } else if (escape == 't') {
      found += '\t';
    } else if (escape == 'r') {
      found += '\r';
    } else if (escape == '"' || escape == '\\') {
      found += escape;
    } else if (escape == 'x' && remaining() >= 2 && hex_digit(text_[at_]) >= 0 &&
               hex_digit(text_[at_ + 1]) >= 0) {
      found += static_cast<char>(hex_digit(text_[at_]) * 16 + hex_digit(text_[at_ + 1]));
      at_ += 2;
    } else {
      throw error_at(stop, "unknown escape in quotes").expected("\\\" \\\\ \\n \\r \\t or \\xNN");
    }
  }
}

std::string_view Lexer::plain_text(std::string_view what) {
  if (!take('"')) throw error_here(concat("expected ", what, " in quotes"));
  const std::size_t start = at_;
  const std::size_t stop = text_.find('"', start);
  if (stop == std::string_view::npos) throw error_at(start - 1, "the quote is not closed");
  at_ = stop + 1;
  return text_.substr(start, stop - start);
}

std::string_view Lexer::number() {
  skip_space();
  const std::size_t start = at_;
  while (at_ < text_.size() && (is_digit(text_[at_]) || is_letter(text_[at_]) ||
                                text_[at_] == '.' || text_[at_] == '-' || text_[at_] == '+')) {
    ++at_;
  }
  return text_.substr(start, at_ - start);
}

std::int64_t Lexer::integer(std::string_view what) {
  const std::size_t start = position();
  if (const auto value = parse_integer(number())) return *value;
  at_ = start;
  throw error_here(concat("expected ", what));
}

double Lexer::real(std::string_view what) {
  const std::size_t start = position();
  if (const auto value = parse_real(number())) return *value;
  at_ = start;
  throw error_here(concat("expected ", what));
}

std::size_t Lexer::end_of_quote(std::size_t from) const {
  for (std::size_t i = from + 1; i < text_.size() && text_[i] != '\n'; ++i) {
    if (text_[i] == '"') return i + 1;
    if (text_[i] == '\\') ++i;
  }
  throw error_at(from, "the quote is not closed");
}

// Returns the end of the bracketed text that starts at `from`. Symbols may be quoted.
std::size_t Lexer::end_of_brackets(std::size_t from) const {
  int depth = 0;
  for (std::size_t i = from; i < text_.size(); ++i) {
    const char c = text_[i];
    if (c == '(' || c == '[') {
      if (++depth > kMaxBracketDepth) throw error_at(i, "brackets are nested too deeply");
    } else if (c == ')' || c == ']') {
      if (--depth == 0) return i + 1;
    } else if (c == '"') {
      i = end_of_quote(i) - 1;
    } else if (c == '{' || c == '}') {
      break;
    }
  }
  throw error_at(from, "the bracket is not closed");
}

bool Lexer::skip_group() {
  int depth = 0;
  for (at_ = position(); at_ < text_.size(); at_ = std::max(at_ + 1, position())) {
    const char c = text_[at_];
    depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    if (c == '"') at_ = end_of_quote(at_) - 1;
    if (depth > 0) continue;
    const bool is_closing = depth == 0 && (c == ')' || c == ']' || c == '}');
    at_ += is_closing ? 1 : 0;
    return is_closing;
  }
  return false;
}

// Returns the text up to the comma or bracket that ends a dim.
std::string_view Lexer::dim_text() {
  skip_space();
  const std::size_t start = at_;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '(' || c == '[') {
      at_ = end_of_brackets(at_);
    } else if (c == '"') {
      at_ = end_of_quote(at_);
    } else if (c == ',' || c == ']' || c == ')' || c == '}' || c == '>' || c == '#') {
      break;
    } else {
      ++at_;
    }
  }
  return trim(text_.substr(start, at_ - start));
}

Dim Lexer::dim(const SymbolRanges& ranges) {
  const std::size_t start = position();
  std::int64_t value = 0;
  const char* const end = text_.data() + text_.size();
  const auto [stop, failure] = std::from_chars(text_.data() + start, end, value);
  if (failure == std::errc{}) {  // fast path: most dims are numbers
    at_ = static_cast<std::size_t>(stop - text_.data());
    const char after = peek();
    if (after == ',' || after == ']' || after == '}') return value;
    at_ = start;
  }
  try {
    return parse_dim(dim_text(), ranges);
  } catch (Error& error) {
    error.at(place(start));
    throw;
  }
}

Type Lexer::type(const SymbolRanges& ranges) {
  const std::size_t start = position();
  if (take('?')) return {};
  while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
  if (at_ == start || at_ == text_.size() || (text_[at_] != '[' && text_[at_] != '(')) {
    at_ = start;
    throw error_here("expected a type").expected("a type like f32[2, N], seq(i64[]) or ?");
  }
  at_ = end_of_brackets(at_);
  if (at_ < text_.size() && text_[at_] == '@') {
    ++at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
  }
  try {
    return parse_type(text_.substr(start, at_ - start), ranges);
  } catch (Error& error) {
    error.at(place(start));
    throw;
  }
}

std::string Lexer::symbol() {
  const std::size_t start = position();
  if (peek() == '"') {
    at_ = end_of_quote(at_);
  } else {
    while (at_ < text_.size() && !is_space(text_[at_]) && text_[at_] != ',' && text_[at_] != '>') {
      ++at_;
    }
  }
  try {
    const auto found = parse_dim(text_.substr(start, at_ - start)).symbol_name();
    if (found) return *found;
  } catch (const Error&) {
    // Any other token is not a symbol.
  }
  at_ = start;
  throw error_here("expected the name of a symbol");
}

std::string_view Lexer::next_token() {
  const std::size_t start = position();
  if (start == text_.size()) return {};
  std::size_t stop = start + 1;
  if (is_name_char(text_[start]) || text_[start] == '"') {
    while (stop < text_.size() && is_name_char(text_[stop]) && stop < start + 40) ++stop;
  }
  return text_.substr(start, stop - start);
}

Error Lexer::error_at(std::size_t position, std::string summary) const {
  return Error(std::move(summary)).at(place(position));
}

Error Lexer::error_here(std::string summary) {
  const std::string_view token = next_token();
  Error error = error_at(at_, std::move(summary));
  error.got(token.empty() ? std::string("the end of the text") : quote(token));
  return error;
}

std::string Lexer::place(std::size_t position) const {
  return text_place(source_name_, text_, position);
}

}  // namespace tenon::inline ir
