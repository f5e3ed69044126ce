#pragma once

#include "driver/pipeline.h"
#include "ir/tensor.h"
#include "testing/compare.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tenon::diagnose {

/// Values of a run by name, in order of computation.
struct ValueList {
  /// "zoo:resnet18, reference"
  std::string what;
  std::vector<std::pair<std::string, Tensor>> values;
};

/// Comparison of one value of two runs.
struct ValueDifference {
  std::string name, type;
  testing::Comparison comparison;
};
struct ValuesDiff {
  /// common values, in the order of the first list
  std::vector<ValueDifference> values;
  /// names
  std::vector<std::string> only_a, only_b;
  /// the first that differs; null if all are equal
  const ValueDifference* first() const;
};
/// Compares values of equal name. Names in dumps are file names.
ValuesDiff diff_values(const ValueList& a, const ValueList& b, const testing::Tolerance& tolerance);

/// Returns the first pass after which the reference outputs on these inputs differ from those
/// before all passes; empty if no pass changes them.
std::string first_differing_pass(const Graph& graph, const std::vector<Datum>& inputs,
                                 std::span<const passes::Pass> passes,
                                 const testing::Tolerance& tolerance, int threads);

}  // namespace tenon::diagnose
