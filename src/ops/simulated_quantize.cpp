#include "expr/lowering.h"
#include "ops/definition/elements.h"
#include "ops/definition/op_spec.h"

namespace tenon::inline ops::simulated_quantize_op {
namespace {

enum class SimulatedKind { Identity, Input, Weight, Activation };

struct Attrs {
  SimulatedKind kind = SimulatedKind::Identity;
};

TensorType infer(const Attrs&, const OperandTypes& in) {
  const TensorType x = require_elements(in, "x", floats);
  for (const char* name : {"dom_scale", "clip_min", "clip_max"}) {
    if (in[name].dtype == x.dtype && in[name].rank() == 0) continue;
    throw Error(concat("simulated_quantize: '", name, "' must be one number of x's type"))
        .got("x: ", x, ", ", name, ": ", in[name]);
  }
  return x;
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  if (attrs.kind == SimulatedKind::Identity) return op.define("y", x);
  const Expr scale = op.operand("dom_scale");
  const Expr held = min(max(x / scale, op.operand("clip_min")), op.operand("clip_max"));
  op.define("y", round_even(held) * scale);
}

}  // namespace

TENON_DEFINE_OP(simulated_quantize) = OpSpec<Attrs>{
    .name = "simulated_quantize",
    .summary = "what is left of x in steps of `dom_scale`, from `clip_min` to `clip_max` of them",
    .operands = {"x", "dom_scale", "clip_min", "clip_max"},
    .results = {"y"},
    .attrs = {{"kind", &Attrs::kind, words("identity input weight activation")}},
    .infer = infer,
    .lower = lower,
    .gradient = not_differentiable("it is flat between its steps"),
    .layout = any_layout(),
    .examples = {"x: F a b; dom_scale: F; clip_min: F; clip_max: F"},
};

}  // namespace tenon::inline ops::simulated_quantize_op
