#include "quantize/relay_thresholds.h"

#include "base/error.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace tenon::quantize {
namespace {

// Smooths a distribution: moves a little mass from nonzero to zero entries, so that logarithms are
// finite. Returns false if there is too little mass.
bool smooth(std::vector<float>& distribution) {
  constexpr float kLittle = 1e-4F;
  const auto zeros = std::ranges::count(distribution, 0.0F);
  const auto others = static_cast<std::ptrdiff_t>(distribution.size()) - zeros;
  if (others == 0) return false;
  const float taken = kLittle * static_cast<float>(zeros) / static_cast<float>(others);
  if (taken >= 1) return false;
  for (float& share : distribution) share = share == 0 ? kLittle : share - taken;
  return true;
}

float divergence_between(const std::vector<float>& p, const std::vector<float>& q) {
  const float p_sum = std::accumulate(p.begin(), p.end(), 0.0F),
              q_sum = std::accumulate(q.begin(), q.end(), 0.0F);
  float sum = 0;
  for (std::size_t k = 0; k < p.size(); ++k) {
    const float a = p[k] / p_sum, b = q[k] / q_sum;
    sum += a * std::log(a / b);
  }
  return sum;
}

}  // namespace

KlChoice kl_threshold(std::span<const std::int64_t> bins, std::span<const float> edges,
                      std::size_t levels) {
  const std::size_t zero = bins.size() / 2, half = levels / 2;
  KlChoice best{0, std::numeric_limits<float>::infinity(), 0};
  std::vector<float> p, q;
  std::vector<std::int64_t> sliced;
  for (std::size_t reach = half; reach <= zero; ++reach) {
    const std::size_t begin = zero - reach, end = zero + reach + 1, size = end - begin;
    sliced.assign(bins.begin() + static_cast<std::ptrdiff_t>(begin),
                  bins.begin() + static_cast<std::ptrdiff_t>(end));
    p.assign(sliced.begin(), sliced.end());
    // Clips outliers into the end bins.
    const auto total = [&](std::size_t from, std::size_t to) {
      return static_cast<float>(std::accumulate(bins.begin() + static_cast<std::ptrdiff_t>(from),
                                                bins.begin() + static_cast<std::ptrdiff_t>(to),
                                                std::int64_t{0}));
    };
    p.front() = total(0, begin + 1);
    p.back() = total(end - 1, bins.size());
    sliced.front() = 0;
    q.assign(size, 0);
    const std::size_t merged = size / levels;
    for (std::size_t level = 0; level < levels; ++level) {
      const std::size_t from = level * merged, to = level + 1 == levels ? size : from + merged;
      std::int64_t sum = 0, filled = 0;
      for (std::size_t k = from; k < to; ++k) {
        sum += sliced[k];
        filled += sliced[k] != 0 ? 1 : 0;
      }
      if (filled == 0) continue;
      for (std::size_t k = from; k < to; ++k) {
        if (p[k] != 0) q[k] = static_cast<float>(sum) / static_cast<float>(filled);
      }
    }
    if (!smooth(p) || !smooth(q)) continue;
    const float divergence = divergence_between(p, q);
    if (divergence < best.divergence) best = {edges[end], divergence, reach - half};
  }
  return best;
}

void KlObserver::see_extent(std::span<const float> values) {
  for (const float value : values) extent_ = std::max(extent_, std::abs(value));
}

void KlObserver::count(std::span<const float> values) {
  if (extent_ == 0) return;
  const double scale = static_cast<double>(kBins) / (2 * double{extent_});
  for (const float value : values) {
    const auto bin = static_cast<std::int64_t>((double{value} + double{extent_}) * scale);
    ++bins_[static_cast<std::size_t>(std::clamp<std::int64_t>(bin, 0, kBins - 1))];
  }
}

float KlObserver::threshold() const {
  if (extent_ == 0) return 1;  // only zeros
  std::vector<float> edges(kBins + 1);
  for (std::size_t k = 0; k <= kBins; ++k) {
    edges[k] = static_cast<float>(double{extent_} *
                                  (2 * static_cast<double>(k) / static_cast<double>(kBins) - 1));
  }
  const KlChoice choice = kl_threshold(bins_, edges, kLevels);
  return choice.threshold > 0 ? choice.threshold : extent_;
}

PercentileObserver::PercentileObserver(std::int64_t total) {
  constexpr double kShare = 0.99999;
  const auto place = static_cast<std::int64_t>(static_cast<double>(total) * kShare);
  kept_ = static_cast<std::size_t>(std::max<std::int64_t>(total - place, 1));
}

void PercentileObserver::count(std::span<const float> values) {
  for (const float value : values) {
    const float size = std::abs(value);
    if (heap_.size() < kept_) {
      heap_.push_back(size);
      std::ranges::push_heap(heap_, std::greater());
    } else if (size > heap_.front()) {
      std::ranges::pop_heap(heap_, std::greater());
      heap_.back() = size;
      std::ranges::push_heap(heap_, std::greater());
    }
  }
}

float PercentileObserver::threshold() const {
  return heap_.empty() || heap_.front() == 0 ? 1 : heap_.front();
}

}  // namespace tenon::quantize
