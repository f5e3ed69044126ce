#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"

namespace tenon::inline ops::optional_op {
namespace {

struct Attrs {
  Type type;
};

ResultTypes infer(const Attrs& attrs, const OperandTypes& in) {
  return Type::optional(in.has("x") ? in.type("x") : attrs.type);
}

void evaluate(const Attrs&, Evaluation& op) {
  op.set("y", op.has("x") ? Datum::optional(op.datum("x")) : Datum());
}

}  // namespace

TENON_DEFINE_OP(optional) = OpSpec<Attrs>{
    .name = "optional",
    .summary = "an optional that holds x, or nothing (of `type`) if x is missing",
    .operands = {optional("x")},
    .results = {"y"},
    .attrs = {{"type", &Attrs::type}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("its result is an optional"),
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
};

}  // namespace tenon::inline ops::optional_op
