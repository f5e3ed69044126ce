#include "quantize/ranges.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::quantize {
namespace {

double centre_of(const Histogram& histogram, std::size_t bin) {
  return (static_cast<double>(bin) + 0.5) * histogram.bin_width() - histogram.radius();
}

// Mean squared error of rounding to the range's steps and clipping at its ends.
double energy_lost(const Histogram& histogram, const ValueRange& range, int levels) {
  const double step = (range.high - range.low) / (levels - 1), uniform = step * step / 12;
  double lost = 0;
  for (std::size_t k = 0; k < Histogram::kBins; ++k) {
    const auto count = static_cast<double>(histogram.bins()[k]);
    if (count == 0) continue;
    const double value = centre_of(histogram, k), held = std::clamp(value, range.low, range.high);
    const double outside = value - held;
    lost += count * (outside != 0 ? outside * outside : uniform);
  }
  return lost;
}

// Kullback-Leibler divergence of the clipped distribution (outliers in the end bins) from the
// quantized one, spread out again over the nonempty bins.
double information_lost(const Histogram& histogram, const ValueRange& range, int levels) {
  const double width = histogram.bin_width();
  const auto first = static_cast<std::size_t>(
      std::clamp((range.low + histogram.radius()) / width, 0.0, double(Histogram::kBins - 1)));
  const auto last = static_cast<std::size_t>(
      std::clamp((range.high + histogram.radius()) / width, 0.0, double(Histogram::kBins - 1)));
  const std::size_t count = last - first + 1;
  std::vector<double> seen(count, 0), kept(count, 0);
  for (std::size_t k = 0; k < Histogram::kBins; ++k) {
    const std::size_t at = std::clamp(k, first, last) - first;
    seen[at] += static_cast<double>(histogram.bins()[k]);
  }
  for (std::size_t k = 0; k < count; ++k)
    kept[k] = static_cast<double>(histogram.bins()[first + k]);
  const auto steps = static_cast<std::size_t>(levels);
  for (std::size_t step = 0; step < steps; ++step) {
    const std::size_t begin = step * count / steps, end = (step + 1) * count / steps;
    double sum = 0, held = 0;
    for (std::size_t k = begin; k < end; ++k) {
      sum += kept[k];
      held += seen[k] > 0 ? 1 : 0;
    }
    for (std::size_t k = begin; k < end; ++k) kept[k] = seen[k] > 0 && held > 0 ? sum / held : 0;
  }
  double all_seen = 0, all_kept = 0;
  for (std::size_t k = 0; k < count; ++k) {
    all_seen += seen[k];
    all_kept += kept[k];
  }
  if (all_kept == 0) return std::numeric_limits<double>::infinity();
  constexpr double kLeast = 1e-9;
  double lost = 0;
  for (std::size_t k = 0; k < count; ++k) {
    if (seen[k] == 0) continue;
    const double p = seen[k] / all_seen, q = std::max(kept[k] / all_kept, kLeast);
    lost += p * std::log(p / q);
  }
  return lost;
}

ValueRange percentile(const Histogram& histogram, double left_out) {
  const double most = left_out * static_cast<double>(histogram.count());
  ValueRange range{histogram.least(), histogram.greatest()};
  double below = 0, above = 0;
  for (std::size_t k = 0; k < Histogram::kBins; ++k) {
    below += static_cast<double>(histogram.bins()[k]);
    if (below <= most) continue;
    range.low = std::max(range.low, centre_of(histogram, k) - histogram.bin_width() / 2);
    break;
  }
  for (std::size_t k = Histogram::kBins; k-- > 0;) {
    above += static_cast<double>(histogram.bins()[k]);
    if (above <= most) continue;
    range.high = std::min(range.high, centre_of(histogram, k) + histogram.bin_width() / 2);
    break;
  }
  return range;
}

ValueRange with_zero(ValueRange range, bool is_symmetric) {
  range.low = std::min(range.low, 0.0);
  range.high = std::max(range.high, 0.0);
  if (is_symmetric) {
    range.high = std::max(range.high, -range.low);
    range.low = -range.high;
  }
  return range;
}

}  // namespace

RangeRule range_rule(std::string_view name) {
  const std::vector<std::string> names = {"min-max", "percentile", "kl", "mse"};
  for (std::size_t k = 0; k < names.size(); ++k) {
    if (names[k] == name) return static_cast<RangeRule>(k);
  }
  throw Error(concat("no rule for ranges is called '", name, "'"), ErrorKind::Usage)
      .expected("min-max, percentile, kl or mse")
      .hint(suggest_name(std::string(name), names));
}

std::string_view name_of(RangeRule rule) {
  constexpr std::string_view kNames[] = {"min-max", "percentile", "kl", "mse"};
  return kNames[static_cast<std::size_t>(rule)];
}

ValueRange choose_range(const Histogram& histogram, RangeRule rule, int levels, bool is_symmetric,
                        double left_out) {
  const ValueRange whole = with_zero({histogram.least(), histogram.greatest()}, is_symmetric);
  if (histogram.is_empty() || rule == RangeRule::MinMax || whole.high == whole.low) return whole;
  if (rule == RangeRule::Percentile)
    return with_zero(percentile(histogram, left_out), is_symmetric);
  // Fractions of the whole range, for each end separately unless the range is symmetric.
  constexpr int kShares = 64;
  const auto loss = [&](const ValueRange& range) {
    const bool is_kl = rule == RangeRule::Kl;
    if (is_kl && (range.high - range.low) < levels * histogram.bin_width())
      return std::numeric_limits<double>::infinity();
    return is_kl ? information_lost(histogram, range, levels)
                 : energy_lost(histogram, range, levels);
  };
  ValueRange best = whole;
  double least = loss(whole);
  const auto attempt = [&](ValueRange range) {
    const double lost = loss(range);
    if (!(lost < least)) return;
    least = lost;
    best = range;
  };
  for (int share = 1; share < kShares; ++share) {
    const double part = double(share) / kShares;
    attempt({whole.low * part, whole.high * part});
  }
  if (is_symmetric) return best;
  const ValueRange together = best;
  for (int share = 1; share <= kShares; ++share)
    attempt({whole.low * share / kShares, together.high});
  const double low = best.low;
  for (int share = 1; share <= kShares; ++share) attempt({low, whole.high * share / kShares});
  return best;
}

ScaleAndZero scale_of(const ValueRange& range, std::int64_t lowest, std::int64_t highest,
                      bool is_symmetric) {
  constexpr double kLeastRange = 1e-12;
  ScaleAndZero made;
  if (is_symmetric) {
    const double most = std::max({std::abs(range.low), std::abs(range.high), kLeastRange});
    made.zero_point = (lowest + highest + 1) / 2;
    made.scale = static_cast<float>(most / static_cast<double>(highest - made.zero_point));
    return made;
  }
  const double low = std::min(range.low, 0.0),
               high = std::max({range.high, 0.0, low + kLeastRange});
  made.scale = static_cast<float>((high - low) / static_cast<double>(highest - lowest));
  const double zero = static_cast<double>(lowest) - low / static_cast<double>(made.scale);
  made.zero_point = std::clamp(static_cast<std::int64_t>(std::nearbyint(zero)), lowest, highest);
  return made;
}

}  // namespace tenon::quantize
