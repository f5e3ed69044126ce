#include "ops/definition/op_spec.h"
#include "ops/families/convolution.h"
#include "ops/families/pooling.h"

namespace tenon::inline ops::lp_pool_op {
namespace {

struct Attrs : PoolAttrs {
  double p = 2;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  if (!(attrs.p > 0)) throw Error("lp_pool: attribute 'p' must be positive").got(attrs.p);
  return pooled_type("lp_pool", attrs, in["x"]);
}

void lower(const Attrs& attrs, Lowering& op) {
  const Pooling pooling = pooling_of("lp_pool", attrs, op.operand_type("x"));
  const Expr x = abs(window_elements(pooling, op.operand("x"), 0));
  const Expr sums = fold_windows(pooling, Reduction::Sum, pow(x, attrs.p));
  op.define("y", pow(sums, 1 / attrs.p));
}

void gradient(const Attrs& attrs, Gradient& op) {
  const Pooling pooling = pooling_of("lp_pool", attrs, op.operand_type("x"));
  Attributes back = pool_attributes(pooling, attrs, op.result_type("y").layout);
  back.set("p", attrs.p);
  op.add("x", call_op(op.build(), "lp_pool_gradient",
                      {op.operand("x"), op.result("y"), op.upstream("y")}, std::move(back)));
}

}  // namespace

TENON_DEFINE_OP(lp_pool) = OpSpec<Attrs>{
    .name = "lp_pool",
    .summary = "the p-norm of each window of the image x",
    .operands = {"x"},
    .results = {"y"},
    .attrs = with_pool_fields<Attrs>({{"p", &Attrs::p}}),
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = any_layout(),
    .examples = {"x: F n c h w; kernel_shape = 2 2"},
};

}  // namespace tenon::inline ops::lp_pool_op
