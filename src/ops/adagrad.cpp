#include "ops/definition/op_spec.h"
#include "ops/families/optimizer_step.h"

namespace tenon::inline ops::adagrad_op {
namespace {

struct Attrs {
  double rate_decay = 0, epsilon = 0, weight_decay = 0;
};

ResultTypes infer(const Attrs&, const OperandTypes& in) {
  return optimizer_types(in, {"squares"}, 2);
}

// AdaGrad (Duchi, Hazan, Singer 2011).
void lower(const Attrs& attrs, Lowering& op) {
  const Expr gradient = regularised_gradient(op, attrs.weight_decay);
  const Expr rate =
      optimizer_number(op, "rate") / (optimizer_number(op, "step") * attrs.rate_decay + 1.0);
  const Expr squares = op.operand("squares") + gradient * gradient;
  op.define("new_x", op.operand("x") - rate * gradient / (sqrt(squares) + attrs.epsilon));
  op.define("new_squares", squares);
}

}  // namespace

TENON_DEFINE_OP(adagrad) = OpSpec<Attrs>{
    .name = "adagrad",
    .summary =
        "one step of Adagrad: x moves against its gradient, less where squared gradients have "
        "added up",
    .operands = {"rate", "step", "x", "gradient", "squares"},
    .results = {"new_x", "new_squares"},
    .attrs = {{"rate_decay", &Attrs::rate_decay},
              {"epsilon", &Attrs::epsilon},
              {"weight_decay", &Attrs::weight_decay}},
    .infer = infer,
    .lower = lower,
    .gradient = not_differentiable("an optimiser's step is the end of differentiation"),
    .examples = {"rate: F; step: i64; x: F a b; gradient: F a b; squares: F a b"},
};

}  // namespace tenon::inline ops::adagrad_op
