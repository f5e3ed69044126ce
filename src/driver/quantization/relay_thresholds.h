#pragma once

#include "ir/tensor.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

// How Relay's calibration chooses the largest size of a value that is told apart.
namespace tenon::relay_quantize {

struct KlChoice {
  float threshold = 0;
  float divergence = 0;
  std::size_t candidate = 0;
};
/// Of thresholds at the edges of a histogram's bins around zero, the one at which rounding what is
/// below it to `levels` steps changes the distribution least. There is one edge more than bins, and
/// an odd number of bins.
KlChoice kl_threshold(std::span<const std::int64_t> bins, std::span<const float> edges,
                      std::size_t levels);

/// Sees a value twice: first how large it gets, then how often it has each size. Memory does not
/// grow with the number of samples.
class KlObserver {
 public:
  static constexpr std::size_t kBins = 8001, kLevels = 255;
  void see_extent(std::span<const float> values);
  void count(std::span<const float> values);
  float threshold() const;

 private:
  float extent_ = 0;
  std::vector<std::int64_t> bins_ = std::vector<std::int64_t>(kBins, 0);
};

/// The size that one in a hundred thousand exceeds: exact, from the largest alone.
class PercentileObserver {
 public:
  /// `total` elements will be seen.
  explicit PercentileObserver(std::int64_t total);
  void count(std::span<const float> values);
  float threshold() const;

 private:
  std::size_t kept_;         // how many of the largest matter
  std::vector<float> heap_;  // the least of them in front
};

}  // namespace tenon::relay_quantize
