#include "expr/lowering.h"
#include "ops/definition/derived_gradient.h"
#include "ops/definition/operand_shapes.h"
#include "ops/families/local_response.h"

namespace tenon::inline ops::lrn_gradient_op {
namespace {

using Attrs = LocalResponseAttrs;

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  require_local_response("lrn_gradient", attrs, in["x"]);
  require_same_dtype("lrn_gradient", in["x"], in["dy"]);
  require_dims("lrn_gradient", "dy", in["dy"], in["x"].dims);
  return in["x"];
}

void lower(const Attrs& attrs, Lowering& op) {
  const TensorType& type = op.operand_type("x");
  const Expr x = op.operand("x"), dy = op.operand("dy");
  const Expr scale = local_scale(attrs, x, type);
  const Expr reached = sum_of_neighbours(dy * x * pow(scale, -attrs.beta - 1), type, attrs.size,
                                         NeighbourSide::Adjoint);
  const double share = 2 * attrs.alpha * attrs.beta / static_cast<double>(attrs.size);
  op.define("dx", dy * pow(scale, -attrs.beta) - share * x * reached);
}

}  // namespace

TENON_DEFINE_OP(lrn_gradient) = OpSpec<Attrs>{
    .name = "lrn_gradient",
    .summary = "how a loss changes with the operand of lrn, from its x and dy",
    .operands = {"x", "dy"},
    .results = {"dx"},
    .attrs = local_response_fields(),
    .infer = infer,
    .lower = lower,
    .gradient = [](const Attrs&, Gradient& op) { add_derived_gradient(op, "dx"); },
    .layout = any_layout(),
    .examples = {"x: F n c h w; dy: F n c h w; size = 3"},
};

}  // namespace tenon::inline ops::lrn_gradient_op
