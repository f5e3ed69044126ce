#pragma once

#include "ir/type.h"

#include <cstddef>
#include <string_view>

namespace tenon {

/// A place in a text being read; dims and types are read from it wherever they stand.
struct TextCursor {
  std::string_view text;
  /// what is being read, for messages: "extent", "type"
  std::string_view subject;
  std::size_t position = 0;

  void skip_space();
  bool is_at_end();
  /// The next character that is not space, '\0' at the end.
  char peek();
  /// Steps over `c` if it is next.
  bool accept(char c);
  void expect(char c);
  /// Steps over [A-Za-z_][A-Za-z0-9_]*, empty if none is next.
  std::string_view accept_identifier();
  /// Throws an Error that names the column and what should have stood there.
  [[noreturn]] void fail(std::string_view expected);
};

/// Reads one dim or type and leaves the cursor behind it.
Dim parse_dim(TextCursor& cursor, const SymbolRanges& ranges);
Type parse_type(TextCursor& cursor, const SymbolRanges& ranges);

}  // namespace tenon
