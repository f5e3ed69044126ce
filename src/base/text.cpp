#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace tenon::inline base {

namespace {

std::string lowered(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// Damerau-Levenshtein distance (a transposition of neighbours is one edit), with three rows of
// memory.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> last(b.size() + 1), row(b.size() + 1), before(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), last[j] + 1, row[j - 1] + 1});
      const bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

/// Formats with three significant digits below 1,000, without trailing zeros.
std::string three_digits(double value) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::fixed, decimals);
  std::string text(buffer.data(), end.ptr);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

template <class T>
std::string shortest_real(T value) {
  if (std::isnan(value)) return "nan";
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  std::string text(buffer.data(), end.ptr);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";  // 'n' as in inf
  return text;
}

/// Returns the length of the UTF-8 character at `at`; 0 if invalid.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view word, std::span<const std::string> known) {
  const std::string wanted = lowered(word);
  std::size_t best_distance = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  std::optional<std::string> best;
  for (const std::string& name : known) {
    const std::size_t longer = std::max(name.size(), wanted.size());
    const std::size_t shorter = std::min(name.size(), wanted.size());
    if (longer - shorter >= best_distance) continue;
    const std::size_t distance = edit_distance(wanted, lowered(name));
    // A short word is close to almost any other word.
    if (distance >= best_distance || distance >= shorter) continue;
    best_distance = distance;
    best = name;
  }
  return best;
}

std::string suggest_name(std::string_view word, std::span<const std::string> known) {
  if (const auto nearest = nearest_name(word, known)) return "did you mean '" + *nearest + "'?";
  constexpr std::size_t kShown = 8;
  std::string text = "one of " + join(known.first(std::min(known.size(), kShown)), ", ");
  if (known.size() > kShown) text += ", … (" + std::to_string(known.size() - kShown) + " more)";
  return text;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  constexpr std::array kUnits = {" KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1023.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return three_digits(value) + kUnits[unit];
}

std::string with_commas(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t k = text.size(); k > 3 && text[k - 4] != '-';) text.insert(k -= 3, ",");
  return text;
}

std::string format_count(double count) {
  if (std::isnan(count) || std::isinf(count)) return format_real(count);
  if (count < 0) return "-" + format_count(-count);
  if (count < 1000) {
    std::string text = shortest_real(count);
    if (text.ends_with(".0")) text.resize(text.size() - 2);
    return text;
  }
  constexpr std::array kUnits = {" k", " M", " G", " T", " P", " E"};
  double value = count / 1000;
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return three_digits(value) + kUnits[unit];
}

std::string format_real(double value) { return shortest_real(value); }
std::string format_real(float value) { return shortest_real(value); }

std::string quote(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const std::size_t length = utf8_length(text, i);
    if (c == '"' || c == '\\') {
      result += {'\\', text[i]};
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (c < 0x20 || c == 0x7f || length == 0) {
      result += {'\\', 'x', kHex[c >> 4], kHex[c & 15]};
    } else {
      result += text.substr(i, length);
      i += length;
      continue;
    }
    ++i;
  }
  return result += '"';
}

std::optional<std::string> unquote(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') return std::nullopt;
    if (text[i] != '\\') {
      result += text[i];
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    switch (text[i]) {
      case '"':
      case '\\':
        result += text[i];
        break;
      case 'n':
        result += '\n';
        break;
      case 't':
        result += '\t';
        break;
      case 'x': {
        if (i + 2 >= text.size()) return std::nullopt;
        const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
        if (high < 0 || low < 0) return std::nullopt;
        result += static_cast<char>(high * 16 + low);
        i += 2;
        break;
      }
      default:
        return std::nullopt;
    }
  }
  return result;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_real(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace tenon::inline base
