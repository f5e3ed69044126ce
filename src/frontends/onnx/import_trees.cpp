// ai.onnx.ml's decision trees: TreeEnsemble, and the classifier and regressor that it replaced.
#include "base/error.h"
#include "frontends/onnx/ml_scores.h"
#include "frontends/onnx/tree_ensemble.h"
#include "ops/definition/var_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

namespace tenon::frontends::onnx {
namespace {

using Integers = std::vector<std::int64_t>;
using NodeKey = std::pair<std::int64_t, std::int64_t>;  // tree and node

void require_count(const NodeImport& node, const char* list, std::size_t got,
                   std::size_t expected) {
  if (got == expected) return;
  throw Error(concat(node.op_type(), ": '", list, "' has the wrong number of elements"))
      .expected(expected)
      .got(got);
}

TreeEnsemble::Aggregate aggregate_of(const NodeImport& node, const std::string& word) {
  if (word == "AVERAGE") return TreeEnsemble::Aggregate::Average;
  if (word == "SUM") return TreeEnsemble::Aggregate::Sum;
  if (word == "MIN") return TreeEnsemble::Aggregate::Min;
  if (word == "MAX") return TreeEnsemble::Aggregate::Max;
  throw Error(concat(node.op_type(), ": no such aggregate_function"))
      .expected("AVERAGE, SUM, MIN or MAX")
      .got(word);
}

// Uses f64 if features or the model's own numbers are f64.
DType arithmetic_of(const NodeImport& node, std::initializer_list<const char*> tensors) {
  if (node.dtype(node.input(0)) == DType::F64) return DType::F64;
  for (const char* name : tensors) {
    if (node.has_attr(name) && node.tensor(name).dtype() == DType::F64) return DType::F64;
  }
  return DType::F32;
}

Branch branch_of(const NodeImport& node, const std::string& mode) {
  static constexpr std::array<std::string_view, 6> names{"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                                         "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  const auto found = std::ranges::find(names, mode);
  if (found == names.end()) {
    throw Error(concat(node.op_type(), ": no such node mode"))
        .expected("LEAF or BRANCH_…")
        .got(mode);
  }
  return static_cast<Branch>(found - names.begin());
}

// Reads nodes and weights that are identified by tree and number. `owner` is "target" or "class".
TreeEnsemble read_named_trees(const NodeImport& node, const std::string& owner) {
  const Integers trees = node.integers("nodes_treeids"), ids = node.integers("nodes_nodeids"),
                 features = node.integers("nodes_featureids"),
                 on_true = node.integers("nodes_truenodeids"),
                 on_false = node.integers("nodes_falsenodeids"),
                 missing = node.integers("nodes_missing_value_tracks_true");
  const std::vector<std::string> modes = node.texts("nodes_modes");
  const std::vector<double> splits = reals_or_tensor(node, "nodes_values");
  const std::size_t count = ids.size();
  require_count(node, "nodes_treeids", trees.size(), count);
  require_count(node, "nodes_featureids", features.size(), count);
  require_count(node, "nodes_truenodeids", on_true.size(), count);
  require_count(node, "nodes_falsenodeids", on_false.size(), count);
  require_count(node, "nodes_modes", modes.size(), count);
  require_count(node, "nodes_values", splits.size(), count);

  std::map<NodeKey, std::int64_t> places;
  for (std::size_t k = 0; k < count; ++k) {
    if (!places.emplace(NodeKey{trees[k], ids[k]}, static_cast<std::int64_t>(k)).second) {
      throw Error(concat(node.op_type(), ": two nodes have one number"))
          .got("tree ", trees[k], ", node ", ids[k]);
    }
  }
  const auto place_of = [&](std::int64_t tree, std::int64_t id) {
    const auto found = places.find({tree, id});
    if (found != places.end()) return found->second;
    throw Error(concat(node.op_type(), ": there is no such node"))
        .got("tree ", tree, ", node ", id);
  };
  TreeEnsemble result;
  std::vector<bool> has_parent(count, false);
  for (std::size_t k = 0; k < count; ++k) {
    TreeEnsemble::Node entry;
    const auto own = static_cast<std::int64_t>(k);
    entry.on_true = entry.on_false = own;
    if (modes[k] == "LEAF") {
      entry.leaf = static_cast<std::int64_t>(result.leaves.size());
      result.leaves.emplace_back();
    } else {
      entry.branch = branch_of(node, modes[k]);
      entry.feature = features[k];
      entry.split = splits[k];
      entry.on_true = place_of(trees[k], on_true[k]);
      entry.on_false = place_of(trees[k], on_false[k]);
      entry.missing_is_true = k < missing.size() && missing[k] != 0;
      has_parent[static_cast<std::size_t>(entry.on_true)] = true;
      has_parent[static_cast<std::size_t>(entry.on_false)] = true;
    }
    result.nodes.push_back(entry);
  }
  std::set<std::int64_t> rooted;
  for (std::size_t k = 0; k < count; ++k) {
    if (has_parent[k]) continue;
    if (!rooted.insert(trees[k]).second) {
      throw Error(concat(node.op_type(), ": a tree has two roots")).got("tree ", trees[k]);
    }
    result.roots.push_back(static_cast<std::int64_t>(k));
  }
  const Integers weight_trees = node.integers(owner + "_treeids"),
                 weight_nodes = node.integers(owner + "_nodeids"),
                 weight_ids = node.integers(owner + "_ids");
  const std::vector<double> weights = reals_or_tensor(node, owner + "_weights");
  require_count(node, "weights", weights.size(), weight_ids.size());
  require_count(node, "weights' trees", weight_trees.size(), weight_ids.size());
  require_count(node, "weights' nodes", weight_nodes.size(), weight_ids.size());
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const std::int64_t leaf =
        result.nodes[static_cast<std::size_t>(place_of(weight_trees[k], weight_nodes[k]))].leaf;
    // Weights of inner nodes have no effect.
    if (leaf >= 0)
      result.leaves[static_cast<std::size_t>(leaf)].emplace_back(weight_ids[k], weights[k]);
  }
  result.aggregate = aggregate_of(node, node.text("aggregate_function", "SUM"));
  result.base_values = reals_or_tensor(node, "base_values");
  return result;
}

Var with_base(NodeImport& node, const TreeEnsemble& trees, Var scores) {
  if (trees.base_values.empty()) return scores;
  return scores + constant_of_reals(node, trees.base_values,
                                    {static_cast<std::int64_t>(trees.base_values.size())},
                                    node.dtype(scores));
}

void import_tree_regressor(NodeImport& node) {
  TreeEnsemble trees = read_named_trees(node, "target");
  trees.target_count = node.integer("n_targets", 1);
  const DType dtype = arithmetic_of(node, {"nodes_values_as_tensor"});
  const Var scores = with_base(node, trees, trees.scores(node, feature_rows(node, dtype)));
  node.output(
      cast_to(transformed_scores(node, scores, node.text("post_transform", "NONE")), DType::F32));
}

void import_tree_classifier(NodeImport& node) {
  TreeEnsemble trees = read_named_trees(node, "class");
  const auto labels = static_cast<std::int64_t>(std::max(
      node.texts("classlabels_strings").size(), node.integers("classlabels_int64s").size()));
  if (labels < 1) throw Error("TreeEnsembleClassifier: it has no class labels");
  trees.target_count = labels;
  const std::string transform = node.text("post_transform", "NONE");
  const DType dtype = arithmetic_of(node, {"nodes_values_as_tensor", "class_weights_as_tensor"});
  std::set<std::int64_t> classes;
  bool are_weights_positive = true;
  for (const auto& leaf : trees.leaves) {
    for (const auto& [id, weight] : leaf) {
      classes.insert(id);
      are_weights_positive &= weight >= 0;
    }
  }
  const Var x = feature_rows(node, dtype);
  const Dim rows = node.dims(x)[0];
  if (labels == 2 && classes.size() <= 1) {
    // A single column is the score of the second class, for any class index in the weights.
    for (auto& leaf : trees.leaves) {
      for (auto& [id, weight] : leaf) id = 0;
    }
    trees.target_count = 1;
    Var scores = trees.scores(node, x);
    if (!trees.base_values.empty()) scores = scores + trees.base_values.back();
    const double bound = are_weights_positive ? 0.5 : 0;
    const Var is_second = node.call("greater", {scores, node.build.scalar(bound, scores)});
    node.output(0, labels_at(node, reshape_to(cast_to(is_second, DType::I64), {rows}), 2));
    const Var both = transform == "PROBIT" ? transformed_scores(node, scores, transform)
                                           : both_classes(scores, transform,
                                                          are_weights_positive ? OneColumn::Share
                                                                               : OneColumn::Margin);
    node.output(1, cast_to(both, DType::F32));
    return;
  }
  const Var scores = with_base(node, trees, trees.scores(node, x));
  const Var best = node.call("arg_max", {scores}, {{"axis", 1}, {"keep_axes", false}});
  node.output(0, labels_at(node, best, labels));
  node.output(1, cast_to(transformed_scores(node, scores, transform), DType::F32));
}

/// Inner nodes first, then leaves, in ONNX's own order.
class NumberedTrees {
 public:
  explicit NumberedTrees(const NodeImport& import) : node(import) {}

  TreeEnsemble read() {
    const Integers features = node.integers("nodes_featureids");
    const std::size_t count = features.size();
    const Tensor modes = node.tensor("nodes_modes");
    const std::vector<double> splits = node.tensor("nodes_splits").reals();
    const Integers missing = node.integers("nodes_missing_value_tracks_true");
    const Integers on_true = successors("nodes_truenodeids", "nodes_trueleafs", count),
                   on_false = successors("nodes_falsenodeids", "nodes_falseleafs", count);
    require_count(node, "nodes_modes", static_cast<std::size_t>(modes.size()), count);
    require_count(node, "nodes_splits", splits.size(), count);
    for (std::size_t k = 0; k < count; ++k) {
      const std::int64_t mode = modes.integer_at(static_cast<std::int64_t>(k));
      if (mode < 0 || mode > 6)
        throw Error("TreeEnsemble: no such node mode").expected("0 to 6").got(mode);
      trees.nodes.push_back({static_cast<Branch>(mode), features[k], splits[k], on_true[k],
                             on_false[k], k < missing.size() && missing[k] != 0, -1});
    }
    const Integers targets = node.integers("leaf_targetids");
    const std::vector<double> weights = node.tensor("leaf_weights").reals();
    require_count(node, "leaf_weights", weights.size(), targets.size());
    for (std::size_t k = 0; k < targets.size(); ++k) {
      TreeEnsemble::Node leaf;
      leaf.leaf = static_cast<std::int64_t>(k);
      leaf.on_true = leaf.on_false = static_cast<std::int64_t>(trees.nodes.size());
      trees.nodes.push_back(leaf);
      trees.leaves.push_back({{targets[k], weights[k]}});
    }
    trees.roots = node.integers("tree_roots");
    trees.target_count = node.integer("n_targets", 1);
    const std::int64_t aggregate = node.integer("aggregate_function", 1);
    if (aggregate < 0 || aggregate > 3)
      throw Error("TreeEnsemble: no such aggregate_function").got(aggregate);
    trees.aggregate = static_cast<TreeEnsemble::Aggregate>(aggregate);
    expand_members();
    return std::move(trees);
  }

 private:
  // A flag selects between leaf numbers and node numbers; leaves follow the inner nodes.
  Integers successors(const char* numbers, const char* flags, std::size_t count) const {
    Integers next = node.integers(numbers);
    const Integers is_leaf = node.integers(flags);
    require_count(node, numbers, next.size(), count);
    require_count(node, flags, is_leaf.size(), count);
    for (std::size_t k = 0; k < count; ++k) {
      if (is_leaf[k] != 0) next[k] += static_cast<std::int64_t>(count);
    }
    return next;
  }

  // Set membership becomes a chain of comparisons with the members; the sets of all such nodes are
  // in one list, separated by NaN.
  void expand_members() {
    const std::vector<double> members = node.has_attr("membership_values")
                                            ? node.tensor("membership_values").reals()
                                            : std::vector<double>{};
    std::size_t position = 0;
    const std::size_t inner_count = trees.nodes.size();
    for (std::size_t k = 0; k < inner_count; ++k) {
      if (trees.nodes[k].leaf >= 0 || trees.nodes[k].branch != Branch::Member) continue;
      std::vector<double> set;
      for (; position < members.size() && !std::isnan(members[position]); ++position) {
        set.push_back(members[position]);
      }
      ++position;
      const TreeEnsemble::Node asked = trees.nodes[k];
      std::size_t current = k;
      for (std::size_t m = 0; m < std::max<std::size_t>(1, set.size()); ++m) {
        TreeEnsemble::Node equal = asked;
        equal.branch = Branch::Equal;
        equal.split = set.empty() ? std::nan("") : set[m];
        equal.missing_is_true = asked.missing_is_true && m == 0;
        const bool is_last = m + 1 >= set.size();
        equal.on_false = is_last ? asked.on_false : static_cast<std::int64_t>(trees.nodes.size());
        trees.nodes[current] = equal;
        if (is_last) break;
        current = trees.nodes.size();
        trees.nodes.emplace_back();
      }
    }
  }

  const NodeImport& node;
  TreeEnsemble trees;
};

void import_tree_ensemble(NodeImport& node) {
  static constexpr std::array<const char*, 5> transforms{"NONE", "SOFTMAX", "LOGISTIC",
                                                         "SOFTMAX_ZERO", "PROBIT"};
  const TreeEnsemble trees = NumberedTrees(node).read();
  const DType dtype = arithmetic_of(node, {"nodes_splits"});
  const std::int64_t transform = node.integer("post_transform", 0);
  if (transform < 0 || transform > 4) {
    throw Error("TreeEnsemble: no such post_transform").expected("0 to 4").got(transform);
  }
  const Var scores = trees.scores(node, feature_rows(node, dtype));
  const Var given =
      transformed_scores(node, scores, transforms[static_cast<std::size_t>(transform)]);
  node.output(cast_to(given, node.tensor("leaf_weights").dtype()));
}

constexpr Handler tree_table[] = {
    {"TreeEnsemble", import_tree_ensemble, "ai.onnx.ml"},
    {"TreeEnsembleClassifier", import_tree_classifier, "ai.onnx.ml"},
    {"TreeEnsembleRegressor", import_tree_regressor, "ai.onnx.ml"},
};

}  // namespace

std::span<const Handler> tree_handlers() { return tree_table; }

}  // namespace tenon::frontends::onnx
