#include "ops/families/letter_case.h"

#include "base/utf8.h"

#include <cstdint>

namespace tenon::inline ops {
namespace {

// Runs of capital letters and the distance in code points to their small letters; a distance of 1
// means that capital and small letters alternate from `first` on. Latin, Greek and Cyrillic.
struct Run {
  char32_t first, last;
  std::uint32_t distance;
};
constexpr Run kRuns[] = {
    {U'A', U'Z', 32},     {0x00C0, 0x00D6, 32}, {0x00D8, 0x00DE, 32}, {0x0100, 0x012E, 1},
    {0x0132, 0x0136, 1},  {0x0139, 0x0147, 1},  {0x014A, 0x0176, 1},  {0x0179, 0x017D, 1},
    {0x0388, 0x038A, 37}, {0x0391, 0x03A1, 32}, {0x03A3, 0x03AB, 32}, {0x0400, 0x040F, 80},
    {0x0410, 0x042F, 32}, {0x0460, 0x0480, 1},  {0x048A, 0x04BE, 1},  {0x04D0, 0x052E, 1},
    {0x1E00, 0x1E94, 1},  {0x1EA0, 0x1EFE, 1},
};

char32_t lower(char32_t code) {
  for (const Run& run : kRuns) {
    if (code < run.first || code > run.last) continue;
    if (run.distance > 1 || (code - run.first) % 2 == 0) return code + run.distance;
  }
  return code;
}

char32_t upper(char32_t code) {
  for (const Run& run : kRuns) {
    if (code < run.first + run.distance || code > run.last + run.distance) continue;
    if (run.distance > 1 || (code - run.first) % 2 == 1) return code - run.distance;
  }
  return code;
}

std::string map_letters(std::string_view text, char32_t (*change)(char32_t)) {
  std::string result;
  while (!text.empty()) {
    const CodePoint letter = decode_utf8(text);
    if (letter.bytes == 0) {
      result += text.front();
      text.remove_prefix(1);
      continue;
    }
    append_utf8(result, change(letter.code));
    text.remove_prefix(letter.bytes);
  }
  return result;
}

}  // namespace

std::string to_lower_case(std::string_view text) { return map_letters(text, lower); }
std::string to_upper_case(std::string_view text) { return map_letters(text, upper); }

}  // namespace tenon::inline ops
