#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::inline base {

/// Returns the known name with the smallest edit distance to `word`, if it is a likely typo.
std::optional<std::string> nearest_name(std::string_view word, std::span<const std::string> known);

/// Returns a hint: "did you mean 'x'?" or, without a near name, "one of a, b, c" (shortened).
std::string suggest_name(std::string_view word, std::span<const std::string> known);

std::string join(std::span<const std::string> parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);

/// Formats 1536 as "1.5 KiB"; exact below 1 KiB.
std::string format_bytes(std::uint64_t bytes);
/// Formats 1234567 as "1,234,567".
std::string with_commas(std::int64_t number);
/// Formats 1234567 as "1.23 M"; exact below 1,000.
std::string format_count(double count);

/// Formats the shortest decimal text that parses to the same number; contains '.' or 'e', or is
/// `nan`, `inf`, `-inf`, to distinguish it from an integer.
std::string format_real(double value);
std::string format_real(float value);

/// Wraps in double quotes with \" \\ \n \t \xNN escapes; `unquote` undoes it.
std::string quote(std::string_view text);
/// Returns the text inside the quotes, or nullopt unless `text` is one quoted text.
std::optional<std::string> unquote(std::string_view text);

/// Parses the whole text as a number, or returns nullopt.
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<double> parse_real(std::string_view text);

}  // namespace tenon::inline base
