#include "ops/gradient.h"
#include "ops/lowering.h"
#include "ops/op_spec.h"

namespace tenon {
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
    if (!provably_different(target.dims[axis], x.dims[axis == 0 ? 0 : axis + 1])) continue;
    throw Error("nll_loss: extents of x and target differ")
        .expected("x: [N, C, …] and target: [N, …]")
        .got("x: ", x, ", target: ", target);
  }
  if (in.has("weight")) require_rank("nll_loss", "weight", in["weight"], 1);
  return {x.dtype, attrs.reduction == LossReduction::None ? target.dims : Dims{}, {}};
}

// A target that is ignored need not be a class; it reads class 0 and counts for nothing.
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

}  // namespace

TENON_DEFINE_OP(nll_loss) = OpSpec<Attrs>{
    .name = "nll_loss",
    .summary =
        "minus the log-probability that x [N, C, …] gives to the class in target [N, …], times "
        "the class's weight; `mean` divides by the weights that counted",
    .operands = {"x", "target", optional("weight")},
    .results = {"y"},
    .attrs = {{"reduction", &Attrs::reduction, words({"mean", "sum", "none"})},
              {"ignore_index", &Attrs::ignore_index}},
    .infer = infer,
    .lower = lower,
};

}  // namespace tenon
