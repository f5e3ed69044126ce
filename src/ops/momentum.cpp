#include "ops/definition/op_spec.h"
#include "ops/families/optimizer_step.h"

namespace tenon::inline ops::momentum_op {
namespace {

struct Attrs {
  double alpha = 0.9, beta = 1, weight_decay = 0;
  bool nesterov = false;
};

ResultTypes infer(const Attrs&, const OperandTypes& in) {
  return optimizer_types(in, {"velocity"}, 2);
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr gradient = regularised_gradient(op, attrs.weight_decay);
  // The first step uses the gradient without `beta`.
  const Expr beta = select(optimizer_number(op, "step") > 0.0,
                           literal(gradient.dtype(), attrs.beta), literal(gradient.dtype(), 1));
  const Expr velocity = op.operand("velocity") * attrs.alpha + gradient * beta;
  const Expr move = attrs.nesterov ? gradient + velocity * attrs.alpha : velocity;
  op.define("new_x", op.operand("x") - optimizer_number(op, "rate") * move);
  op.define("new_velocity", velocity);
}

}  // namespace

TENON_DEFINE_OP(momentum) = OpSpec<Attrs>{
    .name = "momentum",
    .summary = "one step of gradient descent with momentum, Nesterov's if asked",
    .operands = {"rate", "step", "x", "gradient", "velocity"},
    .results = {"new_x", "new_velocity"},
    .attrs = {{"alpha", &Attrs::alpha},
              {"beta", &Attrs::beta},
              {"weight_decay", &Attrs::weight_decay},
              {"nesterov", &Attrs::nesterov}},
    .infer = infer,
    .lower = lower,
    .gradient = not_differentiable("an optimiser's step is the end of differentiation"),
    .examples = {"rate: F; step: i64; x: F a b; gradient: F a b; velocity: F a b"},
};

}  // namespace tenon::inline ops::momentum_op
