#pragma once

#include "ops/definition/evaluation.h"

#include <string>

namespace tenon::testing {

/// Tolerance of a comparison: values are equal if |actual - expected| <= absolute + relative *
/// |expected|; NaN equals NaN.
struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
};

struct Comparison {
  /// within the tolerance
  bool is_equal = true;
  /// description of the first difference
  std::string what;
  /// absolute
  double largest_error = 0;
  /// absolute error over the expected tensor's largest magnitude
  double largest_relative = 0;
  /// number of elements out of tolerance
  std::int64_t differing = 0;
};

Comparison compare(const Datum& actual, const Datum& expected, const Tolerance& tolerance);

}  // namespace tenon::testing
