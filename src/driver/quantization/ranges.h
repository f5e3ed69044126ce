#pragma once

#include "driver/quantization/histogram.h"

#include <string>
#include <string_view>

namespace tenon {

/// How a range is chosen from what was seen.
enum class RangeRule : std::uint8_t { MinMax, Percentile, Kl, Mse };
/// "min-max", "percentile", "kl", "mse". Throws Error (Usage) for others.
RangeRule range_rule(std::string_view name);
std::string_view name_of(RangeRule rule);

/// What is told apart; the rest is held to its ends.
struct ValueRange {
  double low = 0, high = 0;
};

/// A range that takes in 0. `Percentile` leaves out `left_out` of the values at each end; `Kl`
/// loses the least information, and `Mse` the least energy, when the rest is rounded to `levels`
/// steps. Narrow ranges are tried in the histogram's bins; of symmetric ones both ends move
/// together.
ValueRange choose_range(const Histogram& histogram, RangeRule rule, int levels, bool is_symmetric,
                        double left_out = 1e-4);

/// A scale and what stands for 0.
struct ScaleAndZero {
  float scale = 1;
  std::int64_t zero_point = 0;
};
/// For integers from `lowest` to `highest`; a symmetric range has the middle one for 0.
ScaleAndZero scale_of(const ValueRange& range, std::int64_t lowest, std::int64_t highest,
                      bool is_symmetric);

}  // namespace tenon
