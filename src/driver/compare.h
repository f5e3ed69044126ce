#pragma once

#include <string>

#include "ops/evaluation.h"

namespace tenon {

/// Two values agree where |actual - expected| <= absolute + relative * |expected|, NaN with NaN.
struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
};

struct Comparison {
  bool is_equal = true;           ///< within the tolerance
  std::string what;               ///< the first thing that differs, for people
  double largest_error = 0;       ///< absolute
  double largest_relative = 0;    ///< absolute error over the expected tensor's largest magnitude
  std::int64_t differing = 0;     ///< elements out of tolerance
};

Comparison compare(const Datum& actual, const Datum& expected, const Tolerance& tolerance);

}  // namespace tenon
