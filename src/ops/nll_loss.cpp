#include "expr/lowering.h"
#include "ir/assumptions.h"
#include "ops/definition/elements.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_shapes.h"
#include "ops/families/normalization.h"

namespace tenon::inline ops::nll_loss_op {
namespace {

enum class LossReduction { Mean, Sum, None };

struct Attrs {
  LossReduction reduction = LossReduction::Mean;
  std::optional<std::int64_t> ignore_index;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& x = in["x"];
  const TensorType& target = in["target"];
  if (x.rank() < 2 || target.rank() + 1 != x.rank()) {
    throw Error("nll_loss: ranks do not fit")
        .expected("x: [N, C, …] and target: [N, …]")
        .got("x: ", x, ", target: ", target);
  }
  for (std::size_t axis = 0; axis < target.rank(); ++axis) {
    if (assume_equal(target.dims[axis], x.dims[axis == 0 ? 0 : axis + 1])) continue;
    throw Error("nll_loss: extents of x and target differ")
        .expected("x: [N, C, …] and target: [N, …]")
        .got("x: ", x, ", target: ", target);
  }
  require_elements(in, "x", floats);
  require_elements(in, "target", integers);
  if (in.has("weight")) {
    require_same_dtype("nll_loss", x, in["weight"]);
    require_dims("nll_loss", "weight", in["weight"], {x.dims[1]});
  }
  return {x.dtype, attrs.reduction == LossReduction::None ? target.dims : Dims{}, {}};
}

// An ignored target may be an invalid class; it reads class 0 with weight zero.
void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Expr target = cast(op.operand("target"), DType::I64);
  const Expr ignored = equal(target, integer(attrs.ignore_index.value_or(0)));
  const Expr chosen = attrs.ignore_index ? select(ignored, 0.0, target) : target;
  const Space space(target.dims());
  std::vector<Expr> coordinates = space.indices();
  coordinates.insert(coordinates.begin() + 1, chosen);
  Expr weight = op.has("weight") ? op.operand("weight").at({chosen})
                                 : broadcast(literal(x.dtype(), 1), target.dims());
  if (attrs.ignore_index) weight = select(ignored, 0.0, weight);
  Expr loss = -(x.at(std::move(coordinates)) * weight);
  if (attrs.ignore_index) loss = select(ignored, 0.0, loss);
  if (attrs.reduction == LossReduction::None) {
    op.define("y", loss);
    return;
  }
  const Axes axes = normal_axes("nll_loss", {}, target.rank());
  const Expr total = sum_out(loss, axes);
  op.define("y", attrs.reduction == LossReduction::Sum ? total : total / sum_out(weight, axes));
}

// With the mean, a weight scales its own loss and the common divisor.
void gradient(const Attrs& attrs, Gradient& op) {
  Builder& build = op.build();
  const Var x = op.operand("x"), zero = build.scalar(0, x), dy = op.upstream("y");
  Var chosen = cast_to(op.operand("target"), DType::I64);
  Var counts = expand_to(build.scalar(1, x), op.operand_type("target").dims);
  if (attrs.ignore_index) {
    const Var none = build.scalar(0, chosen);
    const Var index = build.constant(Tensor::of_integers(std::vector{*attrs.ignore_index}));
    const Var ignored = build.call("equal", {chosen, index});
    chosen = build.call("where", {ignored, none, chosen});
    counts = build.call("where", {ignored, zero, counts});
  }
  const Dims x_dims = op.operand_type("x").dims;
  const std::vector<Attr> class_axis{{"axes", Attr::Integers{1}}};
  const Var off_on = build.call(
      "concat", {reshape_to(zero, {1}), reshape_to(build.scalar(1, x), {1})}, {{"axis", 0}});
  const Attributes hot_attrs{{"depth", x_dims[1]}, {"axis", Dim(1)}};
  const Var hot = build.call_all("one_hot", {chosen, off_on}, hot_attrs, {""}).front();
  Var weight = counts;
  if (op.has("weight")) {
    weight = weight * build.call("gather", {op.operand("weight"), chosen}, {{"axis", 0}});
  }
  Var loss = -build.call("reduce_sum", {x * hot}, {class_axis[0], {"keep_axes", false}});
  Var factor = dy;
  if (attrs.reduction == LossReduction::Mean) {
    factor = dy / build.call("reduce_sum", {weight}, {{"keep_axes", false}});
    loss = loss - op.result("y");
  }
  op.add("x", -hot * build.call("unsqueeze", {weight * factor}, class_axis));
  if (!op.has("weight")) return;
  const Var by_weight = build.call("unsqueeze", {loss * counts * factor}, class_axis);
  op.add("weight", sum_along_axis(hot * by_weight, 1));
}

}  // namespace

TENON_DEFINE_OP(nll_loss) = OpSpec<Attrs>{
    .name = "nll_loss",
    .summary =
        "minus the log-probability that x [N, C, …] gives to the class in target [N, …], times "
        "the class's weight; `mean` divides by the weights that counted",
    .operands = {"x", "target", optional("weight")},
    .results = {"y"},
    .attrs = {{"reduction", &Attrs::reduction, words("mean sum none")},
              {"ignore_index", &Attrs::ignore_index}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .examples = {"x: F n c; target: I n", "x: F n c; target: I n; weight: F c"},
};

}  // namespace tenon::inline ops::nll_loss_op
