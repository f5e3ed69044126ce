#pragma once

#include "driver/compare.h"
#include "driver/pipeline.h"
#include "ir/tensor.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tenon {

/// Values of a run by name, in the order they were made.
struct ValueList {
  /// "zoo:resnet18, reference"
  std::string what;
  std::vector<std::pair<std::string, Tensor>> values;
};

/// One value of two runs, beside each other.
struct ValueDifference {
  std::string name, type;
  Comparison comparison;
};
struct ValuesDiff {
  /// that both have, in the order of the first
  std::vector<ValueDifference> values;
  /// names
  std::vector<std::string> only_a, only_b;
  /// that differs; null where none does
  const ValueDifference* first() const;
};
/// Compares what has the same name. Dumps have file names for names.
ValuesDiff diff_values(const ValueList& a, const ValueList& b, const Tolerance& tolerance);

/// The first pass behind which the outputs differ from those before all passes, by definition on
/// these inputs; empty where none does.
std::string first_differing_pass(const Graph& graph, const std::vector<Datum>& inputs,
                                 std::span<const Pass> passes, const Tolerance& tolerance,
                                 int threads);

}  // namespace tenon
