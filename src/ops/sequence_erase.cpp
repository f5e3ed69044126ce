#include "ops/definition/op_spec.h"
#include "ops/families/sequences.h"

namespace tenon::inline ops::sequence_erase_op {
namespace {

ResultTypes infer(const NoAttrs&, const OperandTypes& in) {
  item_type(in, "sequence");
  return in.type("sequence");
}

void evaluate(const NoAttrs&, Evaluation& op) {
  std::vector<Datum> items = items_of(op, "sequence");
  if (items.empty()) throw Error("sequence_erase: the sequence has no item");
  const std::size_t last = items.size() - 1;
  const std::size_t position =
      position_operand(op, items.size(), last, static_cast<std::int64_t>(last));
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(position));
  op.set("y", sequence_of(std::move(items), op.datum("sequence").element_dtype()));
}

}  // namespace

TENON_DEFINE_OP(sequence_erase) = OpSpec<NoAttrs>{
    .name = "sequence_erase",
    .summary = "the sequence without the item at `position`, or without the last",
    .operands = {"sequence", optional("position")},
    .results = {"y"},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("its result is a sequence"),
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
};

}  // namespace tenon::inline ops::sequence_erase_op
