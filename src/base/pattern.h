#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tenon {

/// A regular expression in RE2's syntax, for matching whole texts. Takes time in proportion to the
/// text whatever the pattern, as it follows all alternatives at once.
///
/// Understands literals, `.`, classes (with `\d \w \s` and `[:alpha:]`), groups, `| * + ? {n,m}`
/// (lazy forms too), `^ $ \A \z \b \B`, `\Q…\E` and the flags `i m s U`; letters fold case as in
/// ASCII.
class Pattern {
 public:
  /// Throws Error for text that is no pattern, is not understood (Unsupported), or is too large.
  explicit Pattern(std::string_view text);

  bool matches(std::string_view text) const;

 private:
  friend class PatternParser;
  friend class PatternRun;

  struct CharRange {
    char32_t first, last;
  };
  enum class Step : std::uint8_t {
    Char,   ///< one code point of `ranges`
    Split,  ///< both `next` and `other`
    Jump,   ///< `next`
    Begin,
    End,
    LineBegin,
    LineEnd,
    WordEdge,
    NoWordEdge,  ///< `next` where this holds
    Match,
  };
  struct Instruction {
    Step step = Step::Match;
    std::size_t next = 0, other = 0;
    std::vector<CharRange> ranges;
  };
  std::vector<Instruction> program_;
};

}  // namespace tenon
