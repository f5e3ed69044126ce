#pragma once

#include "base/error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::relay {

struct Token {
  enum class Kind : std::uint8_t {
    End,
    Word,        ///< `nn.conv2d`, `let`
    Local,       ///< `%x`, `%a.b`, `%x.0`; text without the sign
    Graph,       ///< `%12`; text without the sign
    Global,      ///< `@main`; text without the sign
    Number,      ///< with its suffix
    Projection,  ///< `.1`; text without the dot
    Text,        ///< with its quotes
    Comment,     ///< `/* … */`; what is inside
    Sign,        ///< one of the language's other signs, the longest that fits
    Metadata,    ///< what follows `#[metadata]`, to the end
  };
  Kind kind = Kind::End;
  std::string_view text;
  std::size_t position = 0;
};

/// The tokens of a text; line comments and white space are left out. Throws Error with the place.
std::vector<Token> tokenize(std::string_view text, std::string_view source);

}  // namespace tenon::relay
