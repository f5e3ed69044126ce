#pragma once

#include "base/error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::documents::relay {

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
    /// `/* … */`; the text inside
    Comment,
    /// another sign, the longest match
    Sign,
    /// text after `#[metadata]`, to the end
    Metadata,
  };
  Kind kind = Kind::End;
  std::string_view text;
  std::size_t position = 0;
};

/// Returns the tokens of a text without line comments and white space. Throws Error with the
/// position.
std::vector<Token> tokenize(std::string_view text, std::string_view source);

}  // namespace tenon::documents::relay
