#pragma once

#include "ir/tensor.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

// Result of Relay's KL calibration: the threshold at which a value is clipped.
namespace tenon::quantize {

struct KlChoice {
  float threshold = 0;
  float divergence = 0;
  std::size_t candidate = 0;
};
/// Chooses, among the edges of a histogram around zero, the threshold that minimizes the KL
/// divergence of quantizing the values below it to `levels` steps. Requires an odd number of bins
/// and one edge more than bins.
KlChoice kl_threshold(std::span<const std::int64_t> bins, std::span<const float> edges,
                      std::size_t levels);

/// Observes a value in two sweeps: first its range, then its histogram. Memory does not grow with
/// the number of samples.
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

/// The 99.999th percentile of magnitudes: exact, from the largest elements only.
class PercentileObserver {
 public:
  /// `total`: number of elements to be observed.
  explicit PercentileObserver(std::int64_t total);
  void count(std::span<const float> values);
  float threshold() const;

 private:
  std::size_t kept_;         // number of the largest elements to keep
  std::vector<float> heap_;  // min-heap of the largest elements
};

}  // namespace tenon::quantize
