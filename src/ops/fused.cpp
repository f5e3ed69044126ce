#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"
#include "ops/families/body_types.h"

namespace tenon::inline ops::fused_op {
namespace {

ResultTypes infer(const NoAttrs&, const OperandTypes& in) {
  BodyTypes body("fused", in, 0, in.variadic_types("xs"));
  body.take_outer_symbols();
  if (body.output_count() != in.result_count()) {
    throw Error("fused: the group gives another number of outputs than there are results")
        .expected(in.result_count(), " outputs")
        .got(body.output_count());
  }
  return body.outputs();
}

void evaluate(const NoAttrs&, Evaluation& op) {
  std::vector<Datum> outputs = op.run_body(0, op.variadic("xs"));
  for (std::size_t k = 0; k < op.result_count(); ++k) op.set(k, std::move(outputs.at(k)));
}

}  // namespace

TENON_DEFINE_OP(fused) = OpSpec<NoAttrs>{
    .name = "fused",
    .summary = "what its body gives for xs: nodes that run as one kernel",
    .operands = {variadic("xs")},
    .results = {variadic("ys")},
    .bodies = {"group"},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("groups are made after gradients; inline them first"),
    .layout = logical_order(),
    .examples = {"-"},
};

}  // namespace tenon::inline ops::fused_op
