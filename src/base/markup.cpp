#include "base/markup.h"

namespace tenon::inline base {

std::string in_markup(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool is_refused =
        static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r';
    switch (c) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += is_refused ? ' ' : c;
    }
  }
  return result;
}

}  // namespace tenon::inline base
