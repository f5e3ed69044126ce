#include "ops/definition/derived_gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_shapes.h"
#include "ops/families/pooling.h"

namespace tenon::inline ops::lp_pool_gradient_op {
namespace {

struct Attrs : PoolAttrs {
  double p = 2;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  if (!(attrs.p > 0)) throw Error("lp_pool_gradient: attribute 'p' must be positive").got(attrs.p);
  const TensorType y = pooled_type("lp_pool_gradient", attrs, in["x"]);
  for (const char* operand : {"y", "dy"}) {
    require_same_dtype("lp_pool_gradient", in["x"], in[operand]);
    require_dims("lp_pool_gradient", operand, in[operand], y.dims);
  }
  return in["x"];
}

// dy/dx = sign(x) * (|x| / y)^(p - 1), defined as zero for an all-zero window.
void lower(const Attrs& attrs, Lowering& op) {
  const Pooling pooling = pooling_of("lp_pool_gradient", attrs, op.operand_type("x"));
  const Expr x = op.operand("x"), y = op.operand("y");
  const Expr is_zero = equal(y, 0.0);
  const Expr norm = select(is_zero, 1.0, y);
  const Expr weighted = select(is_zero, 0.0, op.operand("dy") * pow(norm, 1 - attrs.p));
  const Expr slope = apply(UnaryOp::Sign, x) * pow(abs(x), attrs.p - 1);
  op.define("dx", slope * spread_windows(pooling, weighted));
}

}  // namespace

TENON_DEFINE_OP(lp_pool_gradient) = OpSpec<Attrs>{
    .name = "lp_pool_gradient",
    .summary = "how a loss changes with the operand of lp_pool, from its x, y and dy",
    .operands = {"x", "y", "dy"},
    .results = {"dx"},
    .attrs = with_pool_fields<Attrs>({{"p", &Attrs::p}}),
    .infer = infer,
    .lower = lower,
    .gradient = [](const Attrs&, Gradient& op) { add_derived_gradient(op, "dx"); },
    .layout = any_layout(),
    .examples = {"x: F n c 3 4; y: F n c 2 3; dy: F n c 2 3; kernel_shape = 2 2"},
};

}  // namespace tenon::inline ops::lp_pool_gradient_op
