#include "autodiff/gradient_by_rule.h"
#include "base/error.h"
#include "documents/native_node.h"
#include "documents/tensorscope/import_node.h"
#include "documents/tensorscope/names.h"
#include "documents/tensorscope/tf_ops.h"
#include "ir/graph.h"
#include "ops/families/matrices.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tenon::documents::tensorscope {
namespace {

using Integers = Attr::Integers;

std::vector<Var> call_renamed(ImportNode& node) {
  return {node.last(find_tf_op(node.step.ops[node.at])->op, node.operands)};
}

std::vector<Var> clip_to_six(ImportNode& node) {
  const Var x = node.operands.at(0);
  return {node.last("clip", {x, node.build.scalar(0, x), node.build.scalar(6, x)})};
}
std::vector<Var> leaky_relu(ImportNode& node) {
  return {
      node.last("leaky_relu", {node.operands.at(0)}, {{"alpha", 0.2}})};  // TensorFlow's default
}
std::vector<Var> square(ImportNode& node) {
  return {node.last("mul", {node.operands.at(0), node.operands[0]})};
}
std::vector<Var> squared_difference(ImportNode& node) {
  const Var difference = node.operands.at(0) - node.operands.at(1);
  return {node.last("mul", {difference, difference})};
}
std::vector<Var> reciprocal_root(ImportNode& node) {
  return {node.last("reciprocal", {node.call("sqrt", {node.operands.at(0)})})};
}
std::vector<Var> half_of_squares(ImportNode& node) {
  const Var sum = node.call("reduce_sum_square", {node.operands.at(0)}, {{"keep_axes", false}});
  return {node.last("mul", {sum, node.build.scalar(0.5, sum)})};
}

std::vector<Var> add_all(ImportNode& node) {
  if (node.operands.size() < 2) return {node.last("identity", {node.operands.at(0)})};
  Var sum = node.operands[0];
  for (std::size_t k = 1; k + 1 < node.operands.size(); ++k) sum = sum + node.operands[k];
  return {node.last("add", {sum, node.operands.back()})};
}

// TensorFlow passes the forward result to the gradient: applies Tenon's rule in terms of the
// result.
template <const char* kOp, std::size_t kResult>
std::vector<Var> gradient_of(ImportNode& node) {
  const Var y = node.operands.at(kResult), dy = node.operands.at(1 - kResult);
  return {gradient_by_rule(node.build, kOp, Var(), y, dy, node.result)};
}
constexpr char kRelu[] = "relu", kSigmoid[] = "sigmoid", kSqrt[] = "sqrt", kTanh[] = "tanh";

// The rule depends on negative operands, which have negative results.
std::vector<Var> elu_gradient(ImportNode& node) {
  const Var dy = node.operands.at(0), y = node.operands.at(1);
  return {gradient_by_rule(node.build, "elu", y, y, dy, node.result)};
}

// relu6(x) = 6 - relu(6 - relu(x)): the gradient is zero at the bounds.
std::vector<Var> relu6_gradient(ImportNode& node) {
  const Var dy = node.operands.at(0), features = node.operands.at(1);
  const Var below_six = gradient_by_rule(node.build, kRelu, Var(), 6.0 - features, dy, "");
  return {gradient_by_rule(node.build, kRelu, Var(), features, below_six, node.result)};
}

// y = 1/sqrt(x), so sqrt(x) = 1/y.
std::vector<Var> reciprocal_root_gradient(ImportNode& node) {
  const Var y = node.operands.at(0), dy = node.operands.at(1);
  const Var root = node.call("reciprocal", {y});
  const Var by_root = gradient_by_rule(node.build, "reciprocal", root, y, dy, "");
  return {gradient_by_rule(node.build, kSqrt, Var(), root, by_root, node.result)};
}

std::vector<Var> descend(ImportNode& node) {
  return {node.last("sub", {node.operands.at(0), node.operands.at(1) * node.operands.at(2)})};
}

std::vector<Var> reshape(ImportNode& node) {
  return {node.last("reshape", {node.operands.at(0)}, {{"shape", node.output().extents}})};
}

std::vector<Var> cast(ImportNode& node) {
  const ElementType* element = find_element(node.output().element);
  return {node.last("cast", {node.operands.at(0)}, {{"to", to_string(*element->dtype)}})};
}

std::vector<Var> fill_like(ImportNode& node) {
  const double value = node.step.ops[node.at] == "OnesLike" ? 1 : 0;
  const Var one = node.build.scalar(value, node.operands.at(0));
  return {node.last("expand", {one}, {{"shape", node.output().extents}})};
}

// The table omits the permutation: takes it from the optimiser's name, or the first nontrivial one
// that fits the extents.
std::vector<Var> transpose(ImportNode& node) {
  Integers perm(node.row().inputs.at(0).extents.size());
  std::iota(perm.begin(), perm.end(), 0);
  const Integers &from = node.row().inputs[0].extents, &to = node.output().extents;
  if (const auto named = layout_transpose(node.row().node); named && perm.size() == 4) {
    perm = named->to_nchw ? Integers{0, 3, 1, 2} : Integers{0, 2, 3, 1};
  } else if (perm.size() <= 8) {
    const Integers identity = perm;
    bool is_found = false;
    while (!is_found && std::next_permutation(perm.begin(), perm.end())) {
      is_found = from.size() == to.size();
      for (std::size_t k = 0; k < perm.size() && is_found; ++k) {
        is_found = to[k] == from[static_cast<std::size_t>(perm[k])];
      }
    }
    if (!is_found) perm = identity;
  }
  return {node.last("transpose", {node.operands.at(0)}, {{"perm", perm}})};
}

// A vector in the table may be a matrix of one column.
Var as_matrix(ImportNode& node, std::size_t operand, Integers& extents) {
  extents = node.row().inputs.at(operand).extents;
  if (extents.size() != 1) return node.operands[operand];
  extents.push_back(1);
  return node.call("reshape", {node.operands[operand]}, {{"shape", extents}});
}

std::vector<Var> matmul(ImportNode& node) {
  Integers a_extents, b_extents, wanted = node.output().extents;
  Var a = as_matrix(node, 0, a_extents), b = as_matrix(node, 1, b_extents);
  if (wanted.size() == 1) wanted.push_back(1);
  if (a_extents.size() < 2 || b_extents.size() < 2 || wanted.size() < 2)
    refuse(node, "it does not multiply matrices");
  // A gradient transposes the other factor; for square factors the name decides.
  std::vector<std::pair<bool, bool>> ways{
      {false, false}, {false, true}, {true, false}, {true, true}};
  if (const auto gradient = gradient_name(node.row().node)) {
    std::swap(ways[0], ways[numbered(gradient->part).number == 1 ? 2 : 1]);
  }
  const auto at = [](const Integers& extents, std::size_t back) {
    return extents[extents.size() - back];
  };
  for (const auto& [transposes_a, transposes_b] : ways) {
    const std::int64_t rows = at(a_extents, transposes_a ? 1 : 2),
                       inner = at(a_extents, transposes_a ? 2 : 1);
    const std::int64_t columns = at(b_extents, transposes_b ? 2 : 1),
                       other = at(b_extents, transposes_b ? 1 : 2);
    if (inner != other || rows != at(wanted, 2) || columns != at(wanted, 1)) continue;
    if (transposes_a) a = with_last_axes_swapped(node.build, a);
    if (transposes_b) b = with_last_axes_swapped(node.build, b);
    if (node.output().extents.size() != 1) return {node.last("matmul", {a, b})};
    return {
        node.last("reshape", {node.call("matmul", {a, b})}, {{"shape", node.output().extents}})};
  }
  refuse(node, "the matrices do not multiply to this shape");
}

// The axes that are missing in the result's shape (or have become 1).
std::vector<Var> reduce(ImportNode& node) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {{"Max", "reduce_max"},
                                                                     {"Mean", "reduce_mean"},
                                                                     {"Min", "reduce_min"},
                                                                     {"Prod", "reduce_prod"},
                                                                     {"Sum", "reduce_sum"}};
  const Integers &from = node.row().inputs.at(0).extents, &to = node.output().extents;
  Integers axes;
  const bool keeps = from.size() == to.size();
  std::size_t next = 0;
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    const bool stays = keeps ? from[axis] == to[axis] : next < to.size() && from[axis] == to[next];
    if (stays) {
      ++next;
    } else {
      axes.push_back(static_cast<std::int64_t>(axis));
    }
  }
  if (axes.empty()) return {node.last("identity", {node.operands.at(0)})};
  for (const auto& [tensorflow, tenon] : names) {
    if (node.step.ops[node.at] != tensorflow) continue;
    return {node.last(tenon, {node.operands.at(0)}, {{"axes", axes}, {"keep_axes", keeps}})};
  }
  refuse(node, "no such reduction");
}

std::vector<Var> concat_parts(ImportNode& node) {
  std::vector<Var> parts;
  std::vector<const Integers*> shapes;
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    const TensorShape& shape = node.row().inputs[k];
    if (shape.element != node.output().element ||
        shape.extents.size() != node.output().extents.size())
      continue;
    parts.push_back(node.operands[k]);
    shapes.push_back(&shape.extents);
  }
  const Integers& to = node.output().extents;
  for (std::size_t axis = 0; axis < to.size(); ++axis) {
    std::int64_t sum = 0;
    bool fits = true;
    for (const Integers* shape : shapes) {
      for (std::size_t k = 0; k < to.size(); ++k)
        fits = fits && (k == axis || (*shape)[k] == to[k]);
      sum += (*shape)[axis];
    }
    if (!fits || sum != to[axis]) continue;
    return {node.last("concat", parts, {{"axis", static_cast<std::int64_t>(axis)}})};
  }
  refuse(node, "the parts do not join to this shape");
}

std::vector<Var> split(ImportNode& node) {
  const std::size_t data = node.operands.size() > 1 ? 1 : 0;
  const Integers& from = node.row().inputs.at(data).extents;
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    Integers sizes;
    std::int64_t sum = 0;
    bool fits = true;
    for (const TensorShape& part : node.row().outputs) {
      fits = fits && part.extents.size() == from.size();
      for (std::size_t k = 0; k < from.size() && fits; ++k)
        fits = k == axis || part.extents[k] == from[k];
      if (!fits) break;
      sizes.push_back(part.extents[axis]);
      sum += sizes.back();
    }
    if (!fits || sum != from[axis]) continue;
    std::vector<std::string> names(sizes.size());
    names[0] = node.result;
    return node.build.call_all("split", {node.operands[data]},
                               {{"axis", static_cast<std::int64_t>(axis)}, {"sizes", sizes}},
                               names);
  }
  refuse(node, "the parts do not join to the whole");
}

// The table omits the offset of a slice and the split of padding: assumes offset zero, and even
// padding.
std::vector<Var> slice(ImportNode& node) {
  const Integers& to = node.output().extents;
  Integers axes(to.size());
  std::iota(axes.begin(), axes.end(), 0);
  return {node.last("slice", {node.operands.at(0)},
                    {{"starts", Integers(to.size(), 0)}, {"ends", to}, {"axes", axes}})};
}

std::vector<Var> pad(ImportNode& node) {
  const Integers &from = node.row().inputs.at(0).extents, &to = node.output().extents;
  if (from.size() != to.size()) refuse(node, "it changes the rank");
  Integers pads(2 * from.size());
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    if (to[axis] < from[axis]) refuse(node, "it makes an axis shorter");
    pads[axis] = (to[axis] - from[axis]) / 2;
    pads[from.size() + axis] = to[axis] - from[axis] - pads[axis];
  }
  std::vector<Var> operands{node.operands[0]};
  // Before a max-pool, pads with the lowest value.
  if (node.step.ops[node.at] == "PadV2")
    operands.push_back(node.build.scalar(-3e38, node.operands[0]));
  return {node.last("pad", operands, {{"pads", pads}})};
}

std::vector<Var> gather(ImportNode& node) {
  const Integers &from = node.row().inputs.at(0).extents, &at = node.row().inputs.at(1).extents;
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    Integers shape(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(axis));
    shape.insert(shape.end(), at.begin(), at.end());
    shape.insert(shape.end(), from.begin() + static_cast<std::ptrdiff_t>(axis) + 1, from.end());
    if (shape != node.output().extents) continue;
    return {node.last("gather", {node.operands[0], node.operands[1]},
                      {{"axis", static_cast<std::int64_t>(axis)}})};
  }
  refuse(node, "no axis gives a result of this shape");
}

std::vector<Var> broadcast(ImportNode& node) {
  return {node.last("expand", {node.operands.at(0)}, {{"shape", node.output().extents}})};
}

std::vector<Var> call_own(ImportNode& node) {
  std::vector<Var> made =
      build_native(parse_native(node.table.note(node.row().node)), node.build, node.operands);
  Graph& graph = node.build.graph();
  if (!made.empty() && !node.result.empty()) graph.rename(ValueId(made[0].id()), node.result);
  return made;
}

std::vector<Var> cross_entropy(ImportNode& node) {
  const Var logits = node.operands.at(0), labels = node.operands.at(1);
  const Var terms = labels * node.call("log_softmax", {logits});
  const Var sums = node.call("reduce_sum", {terms}, {{"axes", Integers{-1}}, {"keep_axes", false}});
  const Var slopes = node.call("softmax", {logits}) - labels;
  return {node.last("neg", {sums}), slopes};
}

}  // namespace

void refuse(const ImportNode& node, std::string_view what) {
  throw Error(concat(node.step.ops[node.at], ": ", what))
      .at(place_of(node.table, node.at, 0), ", node '", node.row().node, "'")
      .got(print_row(node.row()));
}

ImportRule find_import_rule(std::string_view op) {
  constexpr std::pair<std::string_view, ImportRule> rules[] = {
      {"AddN", add_all},
      {"ApplyGradientDescent", descend},
      {"BatchMatMul", matmul},
      {"BroadcastTo", broadcast},
      {"Cast", cast},
      {"Concat", concat_parts},
      {"ConcatV2", concat_parts},
      {"EluGrad", elu_gradient},
      {"ExpandDims", reshape},
      {"GatherV2", gather},
      {"L2Loss", half_of_squares},
      {"LeakyRelu", leaky_relu},
      {"MatMul", matmul},
      {"Max", reduce},
      {"Mean", reduce},
      {"Min", reduce},
      {"OnesLike", fill_like},
      {"Pad", pad},
      {"PadV2", pad},
      {"Prod", reduce},
      {"Relu6", clip_to_six},
      {"Relu6Grad", relu6_gradient},
      {"ReluGrad", gradient_of<kRelu, 1>},
      {"Reshape", reshape},
      {"Rsqrt", reciprocal_root},
      {"RsqrtGrad", reciprocal_root_gradient},
      {"SigmoidGrad", gradient_of<kSigmoid, 0>},
      {"Slice", slice},
      {"SoftmaxCrossEntropyWithLogits", cross_entropy},
      {"Split", split},
      {"SqrtGrad", gradient_of<kSqrt, 0>},
      {"Square", square},
      {"SquaredDifference", squared_difference},
      {"Squeeze", reshape},
      {"Sum", reduce},
      {"TanhGrad", gradient_of<kTanh, 0>},
      {"Transpose", transpose},
      {"ZerosLike", fill_like},
  };
  for (const auto& [name, rule] : rules) {
    if (name == op) return rule;
  }
  const OpInfo* known = find_tf_op(op);
  if (known != nullptr && !known->op.empty() && known->use != OpUse::Written) return call_renamed;
  if (const ImportRule rule = find_image_rule(op)) return rule;
  return op == kOwnOp ? call_own : nullptr;
}

}  // namespace tenon::documents::tensorscope
