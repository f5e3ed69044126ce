#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"
#include "ops/families/body_types.h"

namespace tenon::inline ops::sequence_construct_op {
namespace {

ResultTypes infer(const NoAttrs&, const OperandTypes& in) {
  const std::vector<Type> items = in.variadic_types("items");
  if (items.empty()) {
    throw Error("sequence_construct: there is no item").hint("use sequence_empty");
  }
  Type item = items.front();
  for (const Type& other : items) item = join_types("sequence_construct", item, other, in);
  return Type::sequence(item);
}

void evaluate(const NoAttrs&, Evaluation& op) {
  op.set("y", Datum::sequence(op.variadic("items")));
}

}  // namespace

TENON_DEFINE_OP(sequence_construct) = OpSpec<NoAttrs>{
    .name = "sequence_construct",
    .summary = "a sequence of the given items, of one element type and any shape",
    .operands = {variadic("items")},
    .results = {"y"},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("its result is a sequence"),
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
};

}  // namespace tenon::inline ops::sequence_construct_op
