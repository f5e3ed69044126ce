#pragma once

#include "base/error.h"
#include "frontends/relay/ast.h"
#include "frontends/relay/lexer.h"

#include <string>
#include <string_view>
#include <vector>

namespace tenon::relay {

/// How deep a text may nest.
inline constexpr int kMaxDepth = 150;

/// Goes through tokens; comments are stepped over unless somebody asks for them.
class TokenCursor {
 public:
  /// `text` is the whole text that positions count in; all outlive the cursor. `offset` is where
  /// the tokens' own text starts in it.
  TokenCursor(const std::vector<Token>& tokens, std::string_view text, std::string_view source,
              std::size_t offset = 0)
      : tokens_(tokens), text_(text), source_(source), offset_(offset) {}

  const Token& peek();
  /// The token behind that.
  const Token& peek_second();
  const Token& next();
  bool is_sign(std::string_view sign);
  bool is_word(std::string_view word);
  bool take(std::string_view sign);
  bool take_word(std::string_view word);
  void expect(std::string_view sign, std::string_view where);
  /// The comment that comes before any other token, or null.
  const Token* take_comment();

  std::size_t position() { return peek().position + offset_; }
  std::string place(std::size_t position) const;
  /// An error at the next token, which it shows.
  Error error(std::string summary);
  Error error_at(std::size_t position, std::string summary) const;
  std::string_view text() const { return text_; }
  std::string_view source() const { return source_; }

  /// Holds one level of nesting; refuses too many.
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
/// From the bracket that comes next to the one that closes it, as it stands.
std::string take_balanced(TokenCursor& cursor);
/// At the word `meta`.
MetaReference parse_meta_reference(TokenCursor& cursor);
/// `inff`, `nanf64` and the like: how the printer writes numbers that have no digits.
bool is_special_real(std::string_view word);
/// A number literal with its suffix.
AttributeValue parse_number(TokenCursor& cursor);
/// Whether Tenon has such elements.
bool is_dtype(std::string_view name);

}  // namespace tenon::relay
