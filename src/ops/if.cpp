#include "ops/body_types.h"
#include "ops/evaluation.h"
#include "ops/op_spec.h"

namespace tenon {
namespace {

ResultTypes infer(const NoAttrs&, const OperandTypes& in) {
  if (in.type("condition").is_known() && in["condition"].dtype != DType::Bool) {
    throw Error("if: the condition must be a truth value").expected("bool[]").got(in["condition"]);
  }
  const std::vector<Type> captured = in.variadic_types("captured");
  BodyTypes first("if", in, 0, captured), second("if", in, 1, captured);
  if (first.output_count() != in.result_count() || second.output_count() != in.result_count()) {
    throw Error("if: a branch gives another number of outputs than there are results")
        .expected(in.result_count(), " outputs")
        .got(first.output_count(), " and ", second.output_count());
  }
  std::vector<Type> results;
  for (std::size_t k = 0; k < in.result_count(); ++k) {
    results.push_back(join_types("if", first.output(k), second.output(k), in));
  }
  return results;
}

void evaluate(const NoAttrs&, Evaluation& op) {
  const Tensor& condition = op.tensor("condition");
  if (condition.size() != 1) {
    throw Error("if: the condition must be one element").got(condition.type());
  }
  const bool takes_first = condition.integer_at(0) != 0;
  std::vector<Datum> outputs = op.run_body(takes_first ? 0 : 1, op.variadic("captured"));
  for (std::size_t k = 0; k < op.result_count(); ++k) op.set(k, std::move(outputs.at(k)));
}

}  // namespace

// TODO: a gradient, once `differentiate` can make body graphs.
TENON_DEFINE_OP(if) = OpSpec<NoAttrs>{
    .name = "if",
    .summary =
        "what the body `then` gives where the condition holds, else what `else` gives; both take "
        "the captured values",
    .operands = {"condition", variadic("captured")},
    .results = {variadic("ys")},
    .bodies = {"then", "else"},
    .infer = infer,
    .evaluate = evaluate,
    .fusion = Fusion::Opaque,
    .layout = logical_order(),
};

}  // namespace tenon
