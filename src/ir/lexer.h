#pragma once

#include "base/error.h"
#include "ir/type.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::inline ir {

/// Returns whether the character may occur in a bare name.
bool is_name_char(char c);

/// Tokenizes the IR's text form on demand: the token type of `2` or `x-1` depends on the parser's
/// context. Skips comments and white space.
class Lexer {
 public:
  Lexer(std::string_view text, std::string_view source_name)
      : text_(text), source_name_(source_name) {}

  /// Start of the next token.
  std::size_t position();
  /// Moves back to a position.
  void seek(std::size_t position) { at_ = position; }
  bool is_at_end() { return position() == text_.size(); }
  std::size_t remaining() const { return text_.size() - at_; }

  /// Next character, '\0' at the end.
  char peek();
  bool take(char c);
  /// Consumes `c` or throws; `where` ends the sentence "expected ')' …".
  void expect(char c, std::string_view where);
  bool take_word(std::string_view word);
  /// Consumes a run of name characters; empty if there is none.
  std::string_view word();
  /// Consumes a bare or quoted name; `what` describes it in messages, e.g. "a value's name".
  std::string name(std::string_view what);
  /// Consumes a quoted text and resolves its escapes.
  std::string text(std::string_view what);
  /// Consumes a quoted text without escapes.
  std::string_view plain_text(std::string_view what);
  /// Consumes a run of number characters: `-1.5e+3`, `0x7f`, `nan`, `true`.
  std::string_view number();
  std::int64_t integer(std::string_view what);
  double real(std::string_view what);
  Dim dim(const SymbolRanges& ranges);
  Type type(const SymbolRanges& ranges);
  /// Consumes a balanced group of brackets; returns whether a closed one starts here.
  bool skip_group();
  /// Consumes a symbol's name as written in a dim.
  std::string symbol();

  /// Returns an error that points at a position, or at the next token, which it quotes.
  Error error_at(std::size_t position, std::string summary) const;
  Error error_here(std::string summary);
  /// Returns e.g. "source, line 3, column 14".
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

}  // namespace tenon::inline ir
