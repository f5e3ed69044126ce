#pragma once

#include "base/error.h"
#include "ir/type.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

/// Whether the character may stand in a bare name.
bool is_name_char(char c);

/// Reads the tokens of the IR's text form, one at a time, each when the parser asks for it: what
/// `2` or `x-1` is depends on where it stands. Comments and white space count for nothing.
class Lexer {
 public:
  Lexer(std::string_view text, std::string_view source_name)
      : text_(text), source_name_(source_name) {}

  /// Where the next token starts.
  std::size_t position();
  /// Goes back to a position.
  void seek(std::size_t position) { at_ = position; }
  bool is_at_end() { return position() == text_.size(); }
  std::size_t remaining() const { return text_.size() - at_; }

  /// The next character, '\0' at the end.
  char peek();
  bool take(char c);
  /// Asks for `c`; `where` ends the sentence "expected ')' …".
  void expect(char c, std::string_view where);
  bool take_word(std::string_view word);
  /// A run of name characters; empty if there is none.
  std::string_view word();
  /// A bare or quoted name; `what` is "a value's name" and the like.
  std::string name(std::string_view what);
  /// A quoted text, without its escapes.
  std::string text(std::string_view what);
  /// A quoted text in which nothing is escaped.
  std::string_view plain_text(std::string_view what);
  /// A run of the characters of numbers: `-1.5e+3`, `0x7f`, `nan`, `true`.
  std::string_view number();
  std::int64_t integer(std::string_view what);
  double real(std::string_view what);
  Dim dim(const SymbolRanges& ranges);
  Type type(const SymbolRanges& ranges);
  /// A symbol's name as it stands in a dim.
  std::string symbol();

  /// An error that points at a position, or at the next token and shows it.
  Error error_at(std::size_t position, std::string summary) const;
  Error error_here(std::string summary);
  /// "source, line 3, column 14".
  std::string place(std::size_t position) const;

 private:
  void skip_space();
  std::string_view next_token();
  std::size_t end_of_quote(std::size_t from) const;
  std::size_t end_of_brackets(std::size_t from) const;
  std::string_view dim_text();

  std::string_view text_;
  std::string_view source_name_;
  std::size_t at_ = 0;
};

}  // namespace tenon
