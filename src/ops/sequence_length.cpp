#include "ops/definition/op_spec.h"
#include "ops/families/sequences.h"

namespace tenon::inline ops::sequence_length_op {
namespace {

TensorType infer(const NoAttrs&, const OperandTypes& in) {
  item_type(in, "sequence");
  return {DType::I64, {}, {}};
}

void evaluate(const NoAttrs&, Evaluation& op) {
  const auto count = static_cast<std::int64_t>(items_of(op, "sequence").size());
  op.set("y", Tensor::of<std::int64_t>(DType::I64, {}, {count}));
}

}  // namespace

TENON_DEFINE_OP(sequence_length) = OpSpec<NoAttrs>{
    .name = "sequence_length",
    .summary = "the number of items of a sequence",
    .operands = {"sequence"},
    .results = {"y"},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("it counts"),
    .layout = logical_order(),
};

}  // namespace tenon::inline ops::sequence_length_op
