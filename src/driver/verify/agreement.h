#pragma once

#include "reference/evaluate.h"

#include <functional>
#include <string>
#include <vector>

namespace tenon {

/// Empty where both are the same bit for bit (any NaN is any other); otherwise what differs first.
std::string exact_difference(const Datum& actual, const Datum& expected);

/// How far a graph's outputs may move when it is written in another way.
struct Leeway {
  bool is_exact = true;
  /// of the coarsest element type that is rounded to
  double epsilon = 0;
  /// the most elements that one sum takes
  double reduction = 1;
  /// that one number is allowed
  static constexpr double roundings = 8;
};
/// The leeway between two graphs, none of them too precise.
Leeway leeway_between(const Graph& before, const Graph& after);

/// Outputs of `before` on `inputs`, with every result on the way off by a few roundings; and with
/// as few of them as may be: no narrow float is rounded to its type before the end, nor an f32
/// inside a node.
std::vector<std::vector<Datum>> disturbed_outputs(const Graph& before,
                                                  const std::vector<Datum>& inputs, double epsilon,
                                                  const reference::Options& how);

/// Empty where the outputs agree within the leeway; otherwise which differs and how. `disturbed` is
/// asked only where a plain tolerance does not do: what rounding alone would move as far is let
/// pass. Numbers that were written as text are compared as numbers where rounding moves them.
struct OutputDifference {
  std::size_t output = 0;
  std::string what;
};
std::optional<OutputDifference> difference_between(
    const std::vector<Datum>& actual, const std::vector<Datum>& expected, const Leeway& leeway,
    const std::function<std::vector<std::vector<Datum>>()>& disturbed);

}  // namespace tenon
