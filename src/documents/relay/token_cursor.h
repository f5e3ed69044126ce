#pragma once

#include "base/error.h"
#include "documents/relay/ast.h"
#include "documents/relay/lexer.h"

#include <string>
#include <string_view>
#include <vector>

namespace tenon::documents::relay {

/// Maximum nesting of a text.
inline constexpr int kMaxDepth = 150;

/// Cursor over tokens; skips comments unless they are requested.
class TokenCursor {
 public:
  /// `text` is the whole text, to which positions refer; all must outlive the cursor. `offset` is
  /// the start of the tokens' own text in it.
  TokenCursor(const std::vector<Token>& tokens, std::string_view text, std::string_view source,
              std::size_t offset = 0)
      : tokens_(tokens), text_(text), source_(source), offset_(offset) {}

  const Token& peek();
  /// Returns the token after the next one.
  const Token& peek_second();
  const Token& next();
  bool is_sign(std::string_view sign);
  bool is_word(std::string_view word);
  bool take(std::string_view sign);
  bool take_word(std::string_view word);
  void expect(std::string_view sign, std::string_view where);
  /// Returns the next token if it is a comment, or null.
  const Token* take_comment();

  std::size_t position() { return peek().position + offset_; }
  std::string place(std::size_t position) const;
  /// Returns an error at the next token, with its text.
  Error error(std::string summary);
  Error error_at(std::size_t position, std::string summary) const;
  std::string_view text() const { return text_; }
  std::string_view source() const { return source_; }

  /// RAII guard of one nesting level; throws beyond the limit.
  class Level {
   public:
    explicit Level(TokenCursor& cursor);
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --cursor_.depth_; }

   private:
    TokenCursor& cursor_;
  };

 private:
  const std::vector<Token>& tokens_;
  std::string_view text_, source_;
  std::size_t offset_ = 0, at_ = 0;
  int depth_ = 0;
};

RelayType parse_type(TokenCursor& cursor);
AttributeValue parse_attribute_value(TokenCursor& cursor);
/// Consumes a balanced bracket and returns its text verbatim.
std::string take_balanced(TokenCursor& cursor);
/// Parses from the word `meta`.
MetaReference parse_meta_reference(TokenCursor& cursor);
/// `inff`, `nanf64` and similar: the printer's texts of non-finite numbers.
bool is_special_real(std::string_view word);
/// Parses a number literal with its suffix.
AttributeValue parse_number(TokenCursor& cursor);
/// Returns whether Tenon has the element type.
bool is_dtype(std::string_view name);

}  // namespace tenon::documents::relay
