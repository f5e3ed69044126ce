#include "memory/size_text.h"

#include "base/text.h"

#include <cmath>

namespace tenon::memory {

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr Unit kUnits[] = {
      {"", 1},        {"B", 1},        {"K", 1e3},      {"KB", 1e3},     {"kB", 1e3},
      {"M", 1e6},     {"MB", 1e6},     {"G", 1e9},      {"GB", 1e9},     {"T", 1e12},
      {"TB", 1e12},   {"Ki", 0x1p10},  {"KiB", 0x1p10}, {"Mi", 0x1p20},  {"MiB", 0x1p20},
      {"Gi", 0x1p30}, {"GiB", 0x1p30}, {"Ti", 0x1p40},  {"TiB", 0x1p40},
  };
  text = trim(text);
  const std::size_t end = text.find_first_not_of("0123456789.");
  const std::string_view number = text.substr(0, end);
  const std::string_view unit = end == std::string_view::npos ? "" : trim(text.substr(end));
  const std::optional<double> count = parse_real(number);
  if (number.empty() || !count) return std::nullopt;
  for (const Unit& known : kUnits) {
    if (unit != known.name) continue;
    const double bytes = *count * known.bytes;
    if (!std::isfinite(bytes) || bytes > 0x1p56) return std::nullopt;
    return static_cast<std::uint64_t>(std::llround(bytes));
  }
  return std::nullopt;
}

}  // namespace tenon::memory
