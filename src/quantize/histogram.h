#pragma once

#include "ir/tensor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::quantize {

/// Histogram of values with bins of equal width around zero. A value outside doubles the width, so
/// that memory and time do not grow with the number of samples.
class Histogram {
 public:
  static constexpr std::size_t kBins = 4096;

  /// Throws Error if an element is NaN or infinite.
  void add(const Tensor& tensor);

  bool is_empty() const { return count_ == 0; }
  std::int64_t count() const { return count_; }
  double least() const { return least_; }
  double greatest() const { return greatest_; }
  /// Bins cover -radius to radius.
  double radius() const { return radius_; }
  double bin_width() const { return 2 * radius_ / static_cast<double>(kBins); }
  const std::vector<std::int64_t>& bins() const { return bins_; }

  /// Returns one line that `parse` restores.
  std::string text() const;
  static Histogram parse(const std::string& text);

 private:
  void widen(double to);

  std::vector<std::int64_t> bins_ = std::vector<std::int64_t>(kBins, 0);
  double radius_ = 0, least_ = 0, greatest_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace tenon::quantize
