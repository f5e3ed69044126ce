#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"

namespace tenon::inline ops::optional_has_element_op {
namespace {

TensorType infer(const NoAttrs&, const OperandTypes&) { return {DType::Bool, {}, {}}; }

void evaluate(const NoAttrs&, Evaluation& op) {
  const bool holds_nothing = !op.has("x") || (op.datum("x").kind() == Type::Kind::Optional &&
                                              op.datum("x").items().empty());
  op.set("y", Tensor::of<int>(DType::Bool, {}, {holds_nothing ? 0 : 1}));
}

}  // namespace

TENON_DEFINE_OP(optional_has_element) = OpSpec<NoAttrs>{
    .name = "optional_has_element",
    .summary = "whether x is there: not missing, and no empty optional",
    .operands = {optional("x")},
    .results = {"y"},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("it gives a truth value"),
    .layout = logical_order(),
};

}  // namespace tenon::inline ops::optional_has_element_op
