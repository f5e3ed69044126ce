#include "ops/collective.h"
#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/op_spec.h"

namespace tenon {
namespace {

ResultTypes infer(const NoAttrs&, const OperandTypes& in) {
  return require_elements(in, "x", reals);
}

void evaluate(const NoAttrs&, Evaluation& op) {
  const Tensor& x = op.tensor("x");
  RankSum sum(ranks_of(op), x.dtype(), static_cast<std::size_t>(x.size()));
  sum.add(x.bytes());
  Tensor y(x.dtype(), x.shape());
  sum.take(y.mutable_bytes());
  op.set("y", std::move(y));
}

// What every rank's loss says about the sum comes back to each term of it.
void gradient(const NoAttrs&, Gradient& op) {
  op.add("x", op.build().call("all_reduce", {op.upstream("y")}));
}

}  // namespace

TENON_DEFINE_OP(all_reduce) = OpSpec<NoAttrs>{
    .name = "all_reduce",
    .summary = "the sum of every rank's x, added in rank order, on every rank",
    .operands = {"x"},
    .results = {"y"},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = gradient,
    .layout = logical_order(),
    .is_random = true,  // other ranks decide what it gives
};

}  // namespace tenon
