#include "base/text_place.h"

#include "base/error.h"

#include <algorithm>

namespace tenon::inline base {

std::string text_place(std::string_view source, std::string_view text, std::size_t position) {
  const std::string_view before = text.substr(0, position);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return concat(source, ", line ", line, ", column ", position - line_start + 1);
}

}  // namespace tenon::inline base
