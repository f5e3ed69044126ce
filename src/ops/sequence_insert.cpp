#include "ops/definition/op_spec.h"
#include "ops/families/body_types.h"
#include "ops/families/sequences.h"

namespace tenon::inline ops::sequence_insert_op {
namespace {

ResultTypes infer(const NoAttrs&, const OperandTypes& in) {
  const Type item = item_type(in, "sequence");
  return Type::sequence(join_types("sequence_insert", item, in.type("item"), in));
}

void evaluate(const NoAttrs&, Evaluation& op) {
  std::vector<Datum> items = items_of(op, "sequence");
  const auto end = static_cast<std::int64_t>(items.size());
  const std::size_t position = position_operand(op, items.size(), items.size(), end);
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(position), op.datum("item"));
  op.set("y", Datum::sequence(std::move(items)));
}

}  // namespace

TENON_DEFINE_OP(sequence_insert) = OpSpec<NoAttrs>{
    .name = "sequence_insert",
    .summary = "the sequence with an item put before the one at `position`, or at the end",
    .operands = {"sequence", "item", optional("position")},
    .results = {"y"},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("its result is a sequence"),
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
};

}  // namespace tenon::inline ops::sequence_insert_op
