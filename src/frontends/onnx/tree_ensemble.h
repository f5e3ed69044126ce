#pragma once

#include "frontends/onnx/import_node.h"

#include <cstdint>
#include <vector>

namespace tenon::frontends::onnx {

/// Comparison of an inner node of a tree; the numbers are those of ONNX's TreeEnsemble.
enum class Branch : std::uint8_t { AtMost, Less, AtLeast, Greater, Equal, NotEqual, Member };

/// Trees whose nodes are in one list. An inner node has two successors; a leaf is its own successor
/// and has a row of weights, one for each target.
struct TreeEnsemble {
  struct Node {
    Branch branch = Branch::AtMost;
    std::int64_t feature = 0;
    double split = 0;
    std::int64_t on_true = 0, on_false = 0;
    /// NaN takes the true branch
    bool missing_is_true = false;
    /// the row of weights; -1 for an inner node
    std::int64_t leaf = -1;
  };
  enum class Aggregate { Average, Sum, Min, Max };

  std::vector<Node> nodes;
  std::vector<std::int64_t> roots;
  std::int64_t target_count = 1;
  /// target and weight
  std::vector<std::vector<std::pair<std::int64_t, double>>> leaves;
  Aggregate aggregate = Aggregate::Sum;
  std::vector<double> base_values;

  /// Throws Error unless every path from a root ends in a leaf; returns the length of the longest.
  std::int64_t depth() const;
  /// Appends nodes that return [rows, targets] for rows of features `x`, without base values.
  Var scores(NodeImport& node, Var x) const;
};

}  // namespace tenon::frontends::onnx
