#include "base/error.h"
#include "base/text.h"
#include "ir/letters.h"
#include "ir/type.h"

#include <algorithm>

namespace tenon::inline ir {

namespace {

constexpr std::int64_t kMaxBlock = 4096;

struct LayoutAxis {
  /// 'C', or 'c' for the inner part of a blocked axis.
  char letter;
  /// 1 for an outer axis.
  std::int64_t block;
};

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

/// Consumes the next axis of a layout's text; returns nullopt if the text is malformed.
std::optional<LayoutAxis> take_axis(std::string_view& text) {
  std::size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  if (digits == text.size() || digits > 4) return std::nullopt;
  const char letter = text[digits];
  if (digits == 0 ? !is_upper(letter) : !is_lower(letter)) return std::nullopt;
  const std::int64_t block = digits == 0 ? 1 : parse_integer(text.substr(0, digits)).value_or(0);
  if (digits > 0 && (text[0] == '0' || block > kMaxBlock)) return std::nullopt;
  text.remove_prefix(digits + 1);
  return LayoutAxis{letter, block};
}

void require_layout(std::string_view text) {
  const auto fail = [&](std::string_view why) {
    throw Error(concat("'", text, "' is no layout: ", why))
        .expected("different letters A-Z, then the blocked axes, as in NCHW or NCHW8c");
  };
  std::string seen;
  for (std::string_view rest = text; !rest.empty();) {
    const auto axis = take_axis(rest);
    if (!axis) {
      fail("it does not read as axes");
      return;
    }
    const char letter = axis->letter;
    if (seen.find(letter) != std::string::npos) fail("an axis comes twice");
    if (is_upper(letter) && !seen.empty() && is_lower(seen.back())) fail("blocks come last");
    if (is_lower(letter) && seen.find(static_cast<char>(letter - 'a' + 'A')) == std::string::npos) {
      fail("it blocks an axis that it does not have");
    }
    seen += letter;
  }
}

}  // namespace

Layout::Layout(std::string text) : text_(std::move(text)) { require_layout(text_); }

std::size_t Layout::rank() const {
  return static_cast<std::size_t>(
      std::count_if(text_.begin(), text_.end(), [](char c) { return !is_digit(c); }));
}

std::optional<std::size_t> Layout::axis(char letter) const {
  std::size_t position = 0;
  for (const char c : text_) {
    if (is_digit(c)) continue;
    if (c == letter) return position;
    ++position;
  }
  return std::nullopt;
}

std::int64_t Layout::block(char letter) const {
  for (std::string_view rest = text_; !rest.empty();) {
    const auto axis = take_axis(rest);
    if (axis && is_lower(axis->letter) && (axis->letter | 0x20) == (letter | 0x20)) {
      return axis->block;
    }
  }
  return 1;
}

}  // namespace tenon::inline ir
