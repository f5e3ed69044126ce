#include "frontends/onnx/tree_ensemble.h"

#include "base/error.h"
#include "frontends/onnx/ml_scores.h"
#include "ops/definition/var_ops.h"

#include <algorithm>
#include <array>
#include <limits>

namespace tenon::frontends::onnx {
namespace {

using Node = TreeEnsemble::Node;

constexpr std::int64_t kMaxTreeDepth = 512;    // each level adds about six nodes to the graph
constexpr std::int64_t kMaxWeights = 1 << 27;  // leaves times targets, stored densely

/// All rows and trees descend in lockstep: a matrix [rows, trees] of positions in the list of
/// nodes, advanced by the depth of the deepest tree.
class Descent {
 public:
  Descent(NodeImport& import, const std::vector<Node>& nodes, Var features)
      : node(import), x(features), dtype(import.dtype(features)) {
    std::vector<double> split_values;
    Attr::Integers feature_ids, true_ids, false_ids;
    for (const Node& entry : nodes) {
      split_values.push_back(entry.split);
      feature_ids.push_back(entry.feature);
      true_ids.push_back(entry.on_true);
      false_ids.push_back(entry.on_false);
      if (entry.leaf >= 0) continue;
      has_branch[static_cast<std::size_t>(entry.branch)] = true;
      has_missing |= entry.missing_is_true;
    }
    const auto count = static_cast<std::int64_t>(nodes.size());
    splits = constant_of_reals(node, split_values, {count}, dtype);
    features_of = integers(feature_ids);
    on_true = integers(true_ids);
    on_false = integers(false_ids);
    if (std::ranges::count(has_branch, true) > 1) {
      Attr::Integers kinds;
      for (const Node& entry : nodes) kinds.push_back(static_cast<std::int64_t>(entry.branch));
      branches = integers(kinds);
    }
    if (has_missing) {
      Attr::Integers flags;
      for (const Node& entry : nodes) flags.push_back(entry.missing_is_true ? 1 : 0);
      missing = cast_to(integers(flags), DType::Bool);
    }
  }

  Var step(Var at) const {
    const Var value = node.call("gather_elements", {x, look(features_of, at)}, {{"axis", 1}});
    const Var split = look(splits, at);
    Var holds;
    for (std::size_t kind = 0; kind < 6; ++kind) {
      if (!has_branch[kind]) continue;
      const Var compared = node.call(comparisons[kind], {value, split});
      const Var answer = kind == static_cast<std::size_t>(Branch::NotEqual)
                             ? node.call("logical_not", {compared})
                             : compared;
      if (!holds.is_valid()) {
        holds = answer;
        continue;
      }
      const Var number = node.build.constant(
          Tensor::of<std::int64_t>(DType::I64, {}, {static_cast<std::int64_t>(kind)}));
      holds = node.call("where", {node.call("equal", {look(branches, at), number}), answer, holds});
    }
    if (has_missing) {
      const Var goes_along =
          node.call("logical_and", {node.call("is_nan", {value}), look(missing, at)});
      holds = node.call("logical_or", {holds, goes_along});
    }
    return node.call("where", {holds, look(on_true, at), look(on_false, at)});
  }

 private:
  static constexpr const char* comparisons[6] = {"less_equal", "less",  "greater_equal",
                                                 "greater",    "equal", "equal"};
  Var integers(const Attr::Integers& values) const { return node.build.integers(values); }
  Var look(Var list, Var at) const { return node.call("gather", {list, at}); }

  NodeImport& node;
  Var x;
  DType dtype;
  Var splits, features_of, on_true, on_false, branches, missing;
  std::array<bool, 7> has_branch{};
  bool has_missing = false;
};

}  // namespace

std::int64_t TreeEnsemble::depth() const {
  // Longest path to a leaf, by node: 0 unvisited, -1 in progress, else the length plus one.
  std::vector<std::int64_t> height(nodes.size(), 0);
  std::vector<std::int64_t> stack(roots.begin(), roots.end());
  const auto count = static_cast<std::int64_t>(nodes.size());
  for (std::int64_t root : roots) {
    if (root < 0 || root >= count) throw Error("a tree's root is no node").got(root);
  }
  while (!stack.empty()) {
    const auto id = static_cast<std::size_t>(stack.back());
    const Node& entry = nodes[id];
    if (height[id] > 0 || entry.leaf >= 0) {
      height[id] = std::max<std::int64_t>(height[id], 1);
      stack.pop_back();
      continue;
    }
    if (height[id] == 0) {
      height[id] = -1;
      for (std::int64_t next : {entry.on_true, entry.on_false}) {
        if (next < 0 || next >= count) throw Error("a node of a tree leads nowhere").got(next);
        const std::int64_t known = height[static_cast<std::size_t>(next)];
        if (known < 0) throw Error("a node of a tree leads back to itself").got("node ", next);
        if (known == 0) stack.push_back(next);
      }
      continue;
    }
    std::int64_t highest = 0;
    for (std::int64_t next : {entry.on_true, entry.on_false}) {
      highest = std::max(highest, height[static_cast<std::size_t>(next)]);
    }
    height[id] = highest + 1;
    stack.pop_back();
  }
  std::int64_t deepest = 0;
  for (std::int64_t root : roots) {
    deepest = std::max(deepest, height[static_cast<std::size_t>(root)] - 1);
  }
  return deepest;
}

Var TreeEnsemble::scores(NodeImport& node, Var x) const {
  const std::int64_t levels = depth();
  if (levels > kMaxTreeDepth) node.unsupported(concat("a tree is ", levels, " nodes deep"));
  const auto leaf_count = static_cast<std::int64_t>(leaves.size());
  if (roots.empty() || target_count < 1) throw Error(concat(node.op_type(), ": it has no trees"));
  if (target_count > kMaxWeights / std::max<std::int64_t>(1, leaf_count)) {
    node.unsupported(
        concat("its ", leaf_count, " leaves of ", target_count, " targets are too many"));
  }
  const auto tree_count = static_cast<std::int64_t>(roots.size());
  const Var start = reshape_to(node.build.integers(roots), {1, tree_count});
  Var at = expand_to(start, {node.dims(x)[0], tree_count});
  const Descent descent(node, nodes, x);
  for (std::int64_t level = 0; level < levels; ++level) at = descent.step(at);

  // Targets without a weight in a leaf are excluded from sums and extremes.
  const double infinity = std::numeric_limits<double>::infinity();
  const bool is_extreme = aggregate == Aggregate::Min || aggregate == Aggregate::Max;
  const double nothing = aggregate == Aggregate::Min ? infinity : is_extreme ? -infinity : 0;
  std::vector<double> weights(static_cast<std::size_t>(leaf_count * target_count), nothing);
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    for (const auto& [target, weight] : leaves[leaf]) {
      if (target < 0 || target >= target_count) {
        throw Error(concat(node.op_type(), ": a leaf has a weight for a target there is not"))
            .expected("0 to ", target_count - 1)
            .got(target);
      }
      double& held =
          weights[leaf * static_cast<std::size_t>(target_count) + static_cast<std::size_t>(target)];
      held = is_extreme ? weight : held + weight;
    }
  }
  Attr::Integers leaf_rows;
  for (const Node& entry : nodes) leaf_rows.push_back(std::max<std::int64_t>(0, entry.leaf));
  const Var row = node.call("gather", {node.build.integers(leaf_rows), at});
  const Var table = constant_of_reals(node, weights, {leaf_count, target_count}, node.dtype(x));
  const Var votes = node.call("gather", {table, row});  // [rows, trees, targets]
  const char* reduction = aggregate == Aggregate::Min   ? "reduce_min"
                          : aggregate == Aggregate::Max ? "reduce_max"
                                                        : "reduce_sum";
  const Var total =
      node.call(reduction, {votes}, {{"axes", Attr::Integers{1}}, {"keep_axes", false}});
  if (aggregate == Aggregate::Average) return total / static_cast<double>(tree_count);
  if (!is_extreme) return total;
  const Var is_silent = node.call("is_inf", {total});
  return node.call("where", {is_silent, node.build.scalar(0, total), total});
}

}  // namespace tenon::frontends::onnx
