#include "codegen/guards.h"

#include <algorithm>

namespace tenon::codegen {
namespace {

// Returns the guard of a symbol, added with its full range if missing.
Program::Guard& guard_of(Guards& guards, std::size_t symbol,
                         const std::vector<Program::Symbol>& symbols) {
  const auto found = std::find_if(guards.begin(), guards.end(),
                                  [&](const Program::Guard& g) { return g.symbol == symbol; });
  if (found != guards.end()) return *found;
  return guards.emplace_back(
      Program::Guard{static_cast<std::uint32_t>(symbol), symbols[symbol].lo, symbols[symbol].hi});
}

}  // namespace

DividedGuards divide(const std::vector<Guards>& guards,
                     const std::map<std::size_t, std::int64_t>& values,
                     const std::vector<Program::Symbol>& symbols) {
  DividedGuards divided;
  for (const Guards& given : guards) {
    Guards left = given;
    std::vector<Guards> outside;
    bool can_hold = true;
    for (const auto& [symbol, value] : values) {
      Program::Guard& range = guard_of(left, symbol, symbols);
      can_hold &= range.lo <= value && value <= range.hi;
      if (!can_hold) break;
      const Program::Guard whole = range;
      if (whole.lo < value) {
        range.hi = value - 1;
        outside.push_back(left);
      }
      if (value < whole.hi) {
        range = {whole.symbol, value + 1, whole.hi};
        outside.push_back(left);
      }
      range = {whole.symbol, value, value};
    }
    if (!can_hold) {
      divided.outside.push_back(given);
      continue;
    }
    divided.inside.push_back(std::move(left));
    divided.outside.insert(divided.outside.end(), outside.begin(), outside.end());
  }
  return divided;
}

}  // namespace tenon::codegen
