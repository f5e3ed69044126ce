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
    /// `nn.conv2d`, `let`
    Word,
    /// `%x`, `%a.b`, `%x.0`; text without the sign
    Local,
    /// `%12`; text without the sign
    Graph,
    /// `@main`; text without the sign
    Global,
    /// with its suffix
    Number,
    /// `.1`; text without the dot
    Projection,
    /// with its quotes
    Text,
    /// `/* … */`; what is inside
    Comment,
    /// one of the language's other signs, the longest that fits
    Sign,
    /// what follows `#[metadata]`, to the end
    Metadata,
  };
  Kind kind = Kind::End;
  std::string_view text;
  std::size_t position = 0;
};

/// The tokens of a text; line comments and white space are left out. Throws Error with the place.
std::vector<Token> tokenize(std::string_view text, std::string_view source);

}  // namespace tenon::relay
