#pragma once

#include <memory>
#include <string_view>

namespace re2 {
class RE2;
}

namespace tenon {

/// A regular expression in RE2's syntax, for matching whole texts. Takes time in proportion to the
/// text whatever the pattern.
class Pattern {
 public:
  /// Throws Error for text that is no pattern, or is too large.
  explicit Pattern(std::string_view text);
  Pattern(Pattern&&) noexcept;
  ~Pattern();

  bool matches(std::string_view text) const;

 private:
  std::unique_ptr<const re2::RE2> compiled_;
};

}  // namespace tenon
