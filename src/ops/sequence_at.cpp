#include "ops/definition/op_spec.h"
#include "ops/families/sequences.h"

namespace tenon::inline ops::sequence_at_op {
namespace {

ResultTypes infer(const NoAttrs&, const OperandTypes& in) { return item_type(in, "sequence"); }

void evaluate(const NoAttrs&, Evaluation& op) {
  const std::vector<Datum>& items = items_of(op, "sequence");
  const std::int64_t last = static_cast<std::int64_t>(items.size()) - 1;
  op.set("y", items[position_operand(op, items.size(), 0, last)]);
}

}  // namespace

TENON_DEFINE_OP(sequence_at) = OpSpec<NoAttrs>{
    .name = "sequence_at",
    .summary = "the item of a sequence at a position; -1 is the last",
    .operands = {"sequence", "position"},
    .results = {"y"},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("it reads a sequence"),
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
};

}  // namespace tenon::inline ops::sequence_at_op
