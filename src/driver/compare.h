#pragma once

#include "ops/evaluation.h"

#include <string>

namespace tenon {

/// Two values agree where |actual - expected| <= absolute + relative * |expected|, NaN with NaN.
struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
};

struct Comparison {
  /// within the tolerance
  bool is_equal = true;
  /// the first thing that differs, for people
  std::string what;
  /// absolute
  double largest_error = 0;
  /// absolute error over the expected tensor's largest magnitude
  double largest_relative = 0;
  /// elements out of tolerance
  std::int64_t differing = 0;
};

Comparison compare(const Datum& actual, const Datum& expected, const Tolerance& tolerance);

}  // namespace tenon
