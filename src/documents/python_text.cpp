#include "documents/python_text.h"

#include "base/error.h"

#include <charconv>
#include <cmath>

namespace tenon::documents {

std::string python_real(double value) {
  const double size = std::fabs(value);
  const bool is_scientific = size != 0 && (size < 1e-4 || size >= 1e16);
  const auto format = is_scientific ? std::chars_format::scientific : std::chars_format::fixed;
  char buffer[64];
  const auto [end, problem] = std::to_chars(buffer, buffer + sizeof(buffer), value, format);
  TENON_ASSERT(problem == std::errc(), "a real number fits");
  std::string text(buffer, end);
  if (!is_scientific && text.find('.') == std::string::npos) text += ".0";
  return text;
}

}  // namespace tenon::documents
