#include "ops/definition/elementwise.h"

namespace tenon::inline ops::where_op {
namespace {

TensorType infer(const NoAttrs&, const OperandTypes& in) {
  const TensorType& condition = require_elements(in, "condition", bools);
  require_same_dtype("where", in["a"], in["b"]);
  const TensorType choice = broadcast_type("where", in["a"], in["b"], in["a"].dtype);
  return broadcast_type("where", condition, choice, choice.dtype);
}

void lower(const NoAttrs&, Lowering& op) {
  op.define("y", select(op.operand("condition"), op.operand("a"), op.operand("b")));
}

void gradient(const NoAttrs&, Gradient& op) {
  const Var condition = op.operand("condition"), dy = op.upstream("y");
  op.add("a", choose(condition, dy, 0));
  op.add("b", choose(condition, 0, dy));
}

}  // namespace

TENON_DEFINE_OP(where) = OpSpec<NoAttrs>{
    .name = "where",
    .summary = "a where the condition holds, else b; all broadcast",
    .operands = {"condition", "a", "b"},
    .results = {"y"},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .precision = Precision::MovesOnly,
    .examples = {"condition: B a b; a: T a b; b: T a b", "condition: B; a: T a b; b: T b"},
};

}  // namespace tenon::inline ops::where_op
