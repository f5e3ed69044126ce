#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"
#include "ops/families/body_gradient.h"
#include "ops/families/body_types.h"

namespace tenon::inline ops::if_op {
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

bool is_float_tensor(const Type& type) { return type.is_tensor() && is_float(type.tensor().dtype); }

// Recomputes the taken branch, followed by its gradient.
void gradient(const NoAttrs&, Gradient& op) {
  Builder& build = op.build();
  const std::vector<Var> captured = op.variadic("captured");
  std::vector<Type> types;
  for (Var value : captured) types.push_back(build.type(value));
  std::vector<std::size_t> by;
  for (std::size_t k = 0; k < captured.size(); ++k) {
    if (is_float_tensor(types[k])) by.push_back(k);
  }
  std::vector<Var> operands{op.operand("condition")};
  operands.insert(operands.end(), captured.begin(), captured.end());
  const Node node = build.graph().node(build.graph().value(ValueId(op.result("ys").id())).producer);
  std::vector<std::size_t> flowing;
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    if (node.results[k] && is_float_tensor(build.graph().value(node.results[k]).type))
      flowing.push_back(k);
  }
  for (std::size_t k : flowing) operands.push_back(op.upstream(k));
  std::vector<Graph> branches;
  for (const Graph& branch : node.bodies) {
    BodyGradient body(branch, types, op.differentiate());
    std::vector<ValueId> inputs = body.body_inputs();
    for (std::size_t k : flowing) inputs.push_back(body.add_upstream(k));
    branches.push_back(body.part(inputs, body.differentiate(by)));
  }
  const std::vector<Var> found =
      build.call_all("if", operands, std::vector<Attr>{}, std::vector<std::string>(by.size()),
                     std::move(branches));
  for (std::size_t k = 0; k < by.size(); ++k) op.add(by[k] + 1, found[k]);
}

}  // namespace

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
    .gradient = gradient,
    .fusion = Fusion::Opaque,
    .layout = logical_order(),
    .examples = {"-"},
};

}  // namespace tenon::inline ops::if_op
