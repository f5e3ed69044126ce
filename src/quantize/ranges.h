#pragma once

#include "quantize/histogram.h"

#include <string>
#include <string_view>

namespace tenon::quantize {

/// Rule for choosing a range from a histogram.
enum class RangeRule : std::uint8_t { MinMax, Percentile, Kl, Mse };
/// Parses "min-max", "percentile", "kl" or "mse". Throws Error (Usage) for others.
RangeRule range_rule(std::string_view name);
std::string_view name_of(RangeRule rule);

/// Quantization range; values outside are clipped.
struct ValueRange {
  double low = 0, high = 0;
};

/// Returns a range that contains 0. `Percentile` drops `left_out` of the values at each end; `Kl`
/// minimizes the divergence and `Mse` the squared error of rounding to `levels` steps. Narrower
/// ranges are tried in the histogram's bins; both ends of a symmetric range move together.
ValueRange choose_range(const Histogram& histogram, RangeRule rule, int levels, bool is_symmetric,
                        double left_out = 1e-4);

/// A scale and a zero point.
struct ScaleAndZero {
  float scale = 1;
  std::int64_t zero_point = 0;
};
/// Returns the parameters for integers from `lowest` to `highest`; a symmetric range has its zero
/// point in the middle.
ScaleAndZero scale_of(const ValueRange& range, std::int64_t lowest, std::int64_t highest,
                      bool is_symmetric);

}  // namespace tenon::quantize
