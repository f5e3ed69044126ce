#pragma once

#include <memory>
#include <string_view>

namespace re2 {
class RE2;
}

namespace tenon::inline base {

/// A regular expression (RE2) that matches whole texts in linear time.
class Pattern {
 public:
  /// Throws Error if the pattern is invalid or too large.
  explicit Pattern(std::string_view text);
  Pattern(Pattern&&) noexcept;
  ~Pattern();

  bool matches(std::string_view text) const;

 private:
  std::unique_ptr<const re2::RE2> compiled_;
};

}  // namespace tenon::inline base
