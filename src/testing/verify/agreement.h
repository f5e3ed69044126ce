#pragma once

#include "reference/evaluate.h"

#include <functional>
#include <string>
#include <vector>

namespace tenon::testing {

/// Returns an empty text if both are bit-identical (any NaN equals any other), or else the first
/// difference.
std::string exact_difference(const Datum& actual, const Datum& expected);

/// Allowed difference between the outputs of equivalent graphs.
struct Leeway {
  bool is_exact = true;
  /// of the coarsest element type
  double epsilon = 0;
  /// length of the longest sum
  double reduction = 1;
  /// roundings allowed per number
  static constexpr double roundings = 8;
};
/// Returns the leeway between two graphs, covering the less precise one.
Leeway leeway_between(const Graph& before, const Graph& after);

/// Returns outputs of `before` on `inputs` from runs with every intermediate result perturbed by a
/// few roundings, and from one with minimal rounding: narrow floats are not rounded to their type
/// before the end, nor f32 inside a node.
std::vector<std::vector<Datum>> disturbed_outputs(const Graph& before,
                                                  const std::vector<Datum>& inputs, double epsilon,
                                                  const reference::EvaluateOptions& how);

/// Compares outputs within the leeway; returns the first difference. Calls `disturbed` only if a
/// plain tolerance is exceeded, and accepts differences that rounding alone could cause. Numbers
/// formatted as strings are compared as numbers if rounding changes them.
struct OutputDifference {
  std::size_t output = 0;
  std::string what;
};
std::optional<OutputDifference> difference_between(
    const std::vector<Datum>& actual, const std::vector<Datum>& expected, const Leeway& leeway,
    const std::function<std::vector<std::vector<Datum>>()>& disturbed);

}  // namespace tenon::testing
