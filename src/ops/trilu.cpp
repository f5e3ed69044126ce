#include "expr/lowering.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/families/movement.h"

namespace tenon::inline ops::trilu_op {
namespace {

struct Attrs {
  Dim k = 0;  // the diagonal, counted upwards from the main one
  bool upper = true;
};

TensorType infer(const Attrs&, const OperandTypes& in) {
  if (in["x"].rank() < 2) throw Error("trilu: x must be a matrix or a batch of them").got(in["x"]);
  return in["x"];
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Space space(x.dims());
  const Expr diagonal = space[x.rank() - 1] - space[x.rank() - 2];
  op.define("y", select(attrs.upper ? diagonal >= attrs.k : diagonal <= attrs.k, x, 0.0));
}

void gradient(const Attrs& attrs, Gradient& op) {
  op.add("x", call_with("trilu", {op.upstream("y")}, {{"k", attrs.k}, {"upper", attrs.upper}}));
}

}  // namespace

TENON_DEFINE_OP(trilu) = OpSpec<Attrs>{
    .name = "trilu",
    .summary = "x on and above the k-th diagonal of its last two axes (or below), zero elsewhere",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"k", &Attrs::k, dynamic}, {"upper", &Attrs::upper}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
    .examples = {"x: T a b"},
};

}  // namespace tenon::inline ops::trilu_op
