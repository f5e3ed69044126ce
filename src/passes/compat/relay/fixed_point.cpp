#include "passes/compat/relay/fixed_point.h"

#include <cmath>

namespace tenon::passes::relay_quantize {

FixedPoint fixed_point_of(double number) {
  if (number == 0) return {};
  constexpr std::int64_t kOne = std::int64_t{1} << 31;
  int exponent = 0;
  const double fraction = std::frexp(number, &exponent);
  FixedPoint made{std::llround(fraction * static_cast<double>(kOne)), exponent};
  if (made.multiplier == kOne) {  // rounded up to one
    made.multiplier /= 2;
    ++made.shift;
  }
  return made;
}

}  // namespace tenon::passes::relay_quantize
