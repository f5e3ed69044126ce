#include "ops/definition/op_spec.h"
#include "ops/families/optimizer_step.h"

namespace tenon::inline ops::adam_op {
namespace {

struct Attrs {
  double alpha = 0.9, beta = 0.999, epsilon = 0;
  double weight_decay = 0, weight_decay_after = 0;
};

ResultTypes infer(const Attrs&, const OperandTypes& in) {
  return optimizer_types(in, {"mean", "squares"}, 3);
}

// Adam (Kingma, Ba 2015), with both bias corrections moved into the learning rate.
void lower(const Attrs& attrs, Lowering& op) {
  const Expr gradient = regularised_gradient(op, attrs.weight_decay);
  const Expr mean = op.operand("mean") * attrs.alpha + gradient * (1 - attrs.alpha);
  const Expr squares = op.operand("squares") * attrs.beta + gradient * gradient * (1 - attrs.beta);
  const Expr rate = optimizer_number(op, "rate"), step = optimizer_number(op, "step");
  const Expr correction = sqrt(1.0 - pow(attrs.beta, step)) / (1.0 - pow(attrs.alpha, step));
  const Expr corrected_rate = select(step > 0.0, rate * correction, rate);
  const Expr x = op.operand("x") - corrected_rate * mean / (sqrt(squares) + attrs.epsilon);
  op.define("new_x", x * (1 - attrs.weight_decay_after));
  op.define("new_mean", mean);
  op.define("new_squares", squares);
}

}  // namespace

TENON_DEFINE_OP(adam) = OpSpec<Attrs>{
    .name = "adam",
    .summary =
        "one step of Adam: x moves against its gradient's running mean over the root of the "
        "squares'",
    .operands = {"rate", "step", "x", "gradient", "mean", "squares"},
    .results = {"new_x", "new_mean", "new_squares"},
    .attrs = {{"alpha", &Attrs::alpha},
              {"beta", &Attrs::beta},
              {"epsilon", &Attrs::epsilon},
              {"weight_decay", &Attrs::weight_decay},
              {"weight_decay_after", &Attrs::weight_decay_after}},
    .infer = infer,
    .lower = lower,
    .gradient = not_differentiable("an optimiser's step is the end of differentiation"),
    .examples = {"rate: F; step: i64; x: F a b; gradient: F a b; mean: F a b; squares: F a b"},
};

}  // namespace tenon::inline ops::adam_op
