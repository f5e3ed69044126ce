#include "expr/lowering.h"
#include "ops/definition/gradient.h"
#include "ops/families/local_response.h"

namespace tenon::inline ops::lrn_op {
namespace {

using Attrs = LocalResponseAttrs;

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  require_local_response("lrn", attrs, in["x"]);
  return in["x"];
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  op.define("y", x * pow(local_scale(attrs, x, op.operand_type("x")), -attrs.beta));
}

void gradient(const Attrs& attrs, Gradient& op) {
  op.add("x", op.build().call("lrn_gradient", {op.operand("x"), op.upstream("y")},
                              {{"size", attrs.size},
                               {"alpha", attrs.alpha},
                               {"beta", attrs.beta},
                               {"bias", attrs.bias}}));
}

}  // namespace

TENON_DEFINE_OP(lrn) = OpSpec<Attrs>{
    .name = "lrn",
    .summary = "x over (bias + alpha / size * sum of squares of `size` neighbouring channels)^beta",
    .operands = {"x"},
    .results = {"y"},
    .attrs = local_response_fields(),
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = any_layout(),
    .examples = {"x: F n c h w; size = 3"},
};

}  // namespace tenon::inline ops::lrn_op
