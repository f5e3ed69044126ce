#include "ops/families/movement.h"
#include "passes/rewrite/facts.h"
#include "passes/simplify/rules.h"

#include <algorithm>

namespace tenon::passes::simplification {

using namespace rewrite;

namespace {

using Axes = std::vector<std::int64_t>;

// An empty permutation reverses the axes.
std::optional<Axes> permutation_of(const Dims& perm, std::size_t rank) {
  if (!perm.empty()) return counted_axes(perm, rank);
  Axes reversed(rank);
  for (std::size_t k = 0; k < rank; ++k) reversed[k] = static_cast<std::int64_t>(rank - 1 - k);
  return reversed;
}

bool keeps_order(const Match& match) {
  const TensorType* x = match.type("x");
  const auto perm = x ? permutation_of(match.dims("p"), x->rank()) : std::nullopt;
  return perm && std::is_sorted(perm->begin(), perm->end());
}

// Axes of extent 1 may move anywhere.
bool moves_only_ones(const Match& match) {
  const TensorType* x = match.type("x");
  const auto perm = x ? permutation_of(match.dims("p"), x->rank()) : std::nullopt;
  if (!perm) return false;
  std::int64_t last = -1;
  for (const std::int64_t axis : *perm) {
    if (x->dims[static_cast<std::size_t>(axis)] == Dim(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

bool composes(const Match& match) {
  const TensorType* x = match.type("x");
  if (!x) return false;
  const auto p = permutation_of(match.dims("p"), x->rank()),
             q = permutation_of(match.dims("q"), x->rank());
  if (!p || !q) return false;
  Dims composed;
  for (const std::int64_t axis : *q) composed.emplace_back((*p)[static_cast<std::size_t>(axis)]);
  match.set("r", composed);
  return true;
}

ValueId reshaped(const Match& match) {
  if (!match.root_type().is_tensor()) return {};
  return match.make_reshape(match.value("x"), match.root_type().tensor().dims);
}

// Returns the axes of `from` that each axis of `to` merges, in order; nullopt unless all are whole
// axes.
std::optional<std::vector<Axes>> joined_axes(const Dims& from, const Dims& to) {
  std::vector<Axes> joined;
  std::size_t next = 0;
  for (const Dim& extent : to) {
    if (next == from.size()) return {};
    Axes axes{static_cast<std::int64_t>(next)};
    Dim size = from[next++];
    while (!(size == extent)) {
      if (next == from.size()) return {};
      axes.push_back(static_cast<std::int64_t>(next));
      size = size * from[next++];
    }
    joined.push_back(std::move(axes));
  }
  if (next != from.size()) return {};
  return joined;
}

// Permutation of x that has the elements of the transpose of y, a view of x with merged axes, in
// the same order.
struct UnmergedPermutation {
  Dims perm;
  bool moves_merged_axis = false;
};
std::optional<UnmergedPermutation> unmerged_permutation(const Match& match) {
  const TensorType *x = match.type("x"), *y = match.type("y");
  if (!x || !y || !match.root_type().is_tensor() || x->rank() <= y->rank()) return {};
  const auto perm = permutation_of(match.dims("p"), y->rank());
  const auto joined = joined_axes(x->dims, y->dims);
  if (!perm || !joined) return {};
  UnmergedPermutation unmerged;
  for (std::size_t k = 0; k < perm->size(); ++k) {
    const auto axis = static_cast<std::size_t>((*perm)[k]);
    unmerged.moves_merged_axis |= axis != k && (*joined)[axis].size() > 1;
    for (const std::int64_t part : (*joined)[axis]) unmerged.perm.emplace_back(part);
  }
  return unmerged;
}

// Merged axes stay adjacent under a transpose, so they can be merged after it: each axis that the
// transpose moves then has a constant stride.
ValueId merged_after_transpose(const Match& match) {
  const auto unmerged = unmerged_permutation(match);
  if (!unmerged || !unmerged->moves_merged_axis) return {};
  const Dims& dims = match.root_type().tensor().dims;
  if (!std::all_of(dims.begin(), dims.end(), is_written_down)) return {};
  const ValueId transposed =
      match.make("transpose", {match.value("x")}, {{"perm", unmerged->perm}});
  return match.make_reshape(transposed, dims);
}

Dims without_ones(Dims dims) {
  std::erase(dims, Dim(1));
  return dims;
}

// Axes that are merged before a transpose and split again after it need not be merged: PyTorch's
// exporter transposes the keys of attention so.
ValueId transposed_unmerged(const Match& match) {
  const auto unmerged = unmerged_permutation(match);
  if (!unmerged) return {};
  Dims dims;
  for (const Dim& axis : unmerged->perm)
    dims.push_back(match.type("x")->dims[static_cast<std::size_t>(axis.constant())]);
  const Dims& wanted = match.root_type().tensor().dims;
  if (!(without_ones(dims) == without_ones(wanted))) return {};
  const bool is_view = !(dims == wanted);
  if (is_view && !std::all_of(wanted.begin(), wanted.end(), is_written_down)) return {};
  const ValueId transposed =
      match.make("transpose", {match.value("x")}, {{"perm", unmerged->perm}});
  return is_view ? match.make_reshape(transposed, wanted) : transposed;
}

bool has_the_same_type(const Match& match) {
  const TensorType* x = match.type("x");
  return x && match.root_type().is_tensor() && *x == match.root_type().tensor();
}

// Reductions of one element return the element, but a sum turns a negative zero into a positive
// one.
bool reduces_ones(const Match& match) {
  const TensorType* x = match.type("x");
  if (!x) return false;
  const Node& node = match.root_node();
  if (match.dims("a").empty() && match.flag("n")) return true;
  const auto axes = counted_axes(match.dims("a"), x->rank());
  if (!axes) return false;
  for (std::size_t axis = 0; axis < x->rank(); ++axis) {
    const bool is_reduced =
        axes->empty() ||
        std::find(axes->begin(), axes->end(), static_cast<std::int64_t>(axis)) != axes->end();
    if (is_reduced && x->dims[axis] != Dim(1)) return false;
  }
  const bool is_sum = node.op->name == "reduce_sum" || node.op->name == "reduce_mean";
  return !is_sum || is_never_minus_zero(match.graph(), match.value("x"));
}

ValueId with_axes_kept(const Match& match) {
  Attributes attrs = match.attrs("r");
  attrs.set("axes", match.dims("a"));
  const Node& reduction = match.node("y");
  return match.make(reduction.op->name, {match.value("x")}, std::move(attrs));
}

// Moves an elementwise op between two reshapes before both.
ValueId reshaped_before(const Match& match) {
  const ValueId x = match.value("x"), y = match.value("y");
  const NodeId between = match.graph().value(y).producer;
  if (!is_pointwise(match.graph(), between)) return {};
  std::vector<ValueId> operands = match.graph().node(between).operands;
  std::size_t moved = operands.size();
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const TensorType* type = match.type(operands[k]);
    if (!type) return {};
    if (type->rank() == 0) continue;
    if (moved != operands.size()) return {};
    moved = k;
  }
  if (moved == operands.size()) return {};
  operands[moved] = x;
  const Node& node = match.graph().node(between);
  return match.make_reshape(match.make(node.op->name, std::move(operands), node.attrs),
                            match.root_type().tensor().dims);
}

// Elementwise ops broadcast their operands themselves, without an expand.
ValueId broadcast_by_reader(const Match& match) {
  const Node root = match.root_node();
  std::vector<ValueId> operands = root.operands;
  for (ValueId& operand : operands) {
    const NodeId id = operand ? match.graph().value(operand).producer : NodeId{};
    if (!id || match.graph().op_name(id) != "expand") continue;
    // Missing axes are added at the front, as in the reader's broadcasting.
    operand = match.graph().node(id).operands.front();
  }
  return match.make(root.op->name, std::move(operands), root.attrs);
}

}  // namespace

std::vector<Rule> view_rules() {
  const std::string view = "reshape/squeeze/unsqueeze";
  const std::string unary =
      "relu/gelu/sigmoid/tanh/erf/exp/log/sqrt/neg/abs/cast/swish/softplus/hard_swish/mish";
  const std::string broadcasting =
      "add/sub/mul/div/pow/maximum/minimum/equal/less/less_equal/greater/greater_equal/"
      "logical_and/logical_or";
  return {
      {"transpose(x) {perm = p}", "x", keeps_order},
      {"transpose(transpose(x) {perm = p}) {perm = q}", "transpose(x) {perm = r}", composes},
      {"transpose(x) {perm = p}", reshaped, moves_only_ones},
      {"transpose(y: " + view + "(x) {..}) {perm = p}", merged_after_transpose},
      {view + "(transpose(y: " + view + "(x) {..}) {perm = p}) {..}", transposed_unmerged},
      {view + "(x) {..}", "x", has_the_same_type},
      {"expand(x) {shape = s}", "x", has_the_same_type},
      {"tile(x) {repeats = r}", "x", has_the_same_type},
      {broadcasting + "(expand(_) {..}, _)", broadcast_by_reader},
      {broadcasting + "(_, expand(_) {..})", broadcast_by_reader},
      {"where(expand(_) {..}, _, _)", broadcast_by_reader},
      {"where(_, expand(_) {..}, _)", broadcast_by_reader},
      {"where(_, _, expand(_) {..})", broadcast_by_reader},
      {view + "(" + view + "(x) {..}) {..}", reshaped},
      {"reduce_max/reduce_min/reduce_prod/reduce_sum/reduce_mean(x) "
       "{axes = a, noop_if_empty = n, ..}",
       reshaped, reduces_ones},
      // Reduced axes reinserted by a view.
      {view + "(y: reduce_mean/reduce_sum/reduce_max/reduce_min/reduce_prod(x) "
              "{axes = a, keep_axes = false, ..r}) {..}",
       with_axes_kept, read_once("y")},
      {view + "(y: " + unary + "(" + view + "(x) {..}) {..}) {..}", reshaped_before,
       read_once("y")},
      {view + "(y: add/mul/sub/div(" + view + "(x) {..}, _)) {..}", reshaped_before,
       read_once("y")},
      {view + "(y: sub/div(_, " + view + "(x) {..})) {..}", reshaped_before, read_once("y")},
  };
}

}  // namespace tenon::passes::simplification
