#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// The known name nearest to `word` by edits, if one is near enough to be meant.
std::optional<std::string> nearest_name(std::string_view word, std::span<const std::string> known);

/// "did you mean 'x'?" or, when nothing is near, "one of a, b, c" (shortened); for hints.
std::string suggest_name(std::string_view word, std::span<const std::string> known);

std::string join(std::span<const std::string> parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);

/// 1536 -> "1.5 KiB"; exact below 1 KiB.
std::string format_bytes(std::uint64_t bytes);
/// 1234567 -> "1,234,567"
std::string with_commas(std::int64_t number);
/// 1234567 -> "1.23 M"; exact below 1,000.
std::string format_count(double count);

/// The shortest decimal text that reads back as the same number; always has '.', 'e', or is
/// `nan`, `inf`, `-inf`, so that it never looks like an integer.
std::string format_real(double value);
std::string format_real(float value);

/// Wraps in double quotes with \" \\ \n \t \xNN escapes; `unquote` undoes it.
std::string quote(std::string_view text);
/// The text inside the quotes, or nothing where `text` is not one whole quoted text.
std::optional<std::string> unquote(std::string_view text);

/// The whole text as a number, or nothing.
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<double> parse_real(std::string_view text);

}  // namespace tenon
