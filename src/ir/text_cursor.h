#pragma once

#include "ir/type.h"

#include <cstddef>
#include <string_view>

namespace tenon::inline ir {

/// Position in a text from which dims and types are parsed.
struct TextCursor {
  std::string_view text;
  /// Subject of the parse for messages: "extent", "type".
  std::string_view subject;
  std::size_t position = 0;

  void skip_space();
  bool is_at_end();
  /// Next character that is not space, '\0' at the end.
  char peek();
  /// Consumes `c` if it is next.
  bool accept(char c);
  void expect(char c);
  /// Consumes [A-Za-z_][A-Za-z0-9_]*; empty if no identifier is next.
  std::string_view accept_identifier();
  /// Throws an Error with the column and the expected token.
  [[noreturn]] void fail(std::string_view expected);
};

/// Parses one dim or type and leaves the cursor after it.
Dim parse_dim(TextCursor& cursor, const SymbolRanges& ranges);
Type parse_type(TextCursor& cursor, const SymbolRanges& ranges);

}  // namespace tenon::inline ir
