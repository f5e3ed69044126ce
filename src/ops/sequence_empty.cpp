#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"

namespace tenon::inline ops::sequence_empty_op {
namespace {

struct Attrs {
  DType dtype = DType::F32;
};

ResultTypes infer(const Attrs&, const OperandTypes&) { return Type::sequence({}); }

void evaluate(const Attrs& attrs, Evaluation& op) {
  op.set("y", Datum::empty_sequence(attrs.dtype));
}

}  // namespace

TENON_DEFINE_OP(sequence_empty) = OpSpec<Attrs>{
    .name = "sequence_empty",
    .summary = "a sequence without items, for tensors of one element type",
    .operands = {},
    .results = {"y"},
    .attrs = {{"dtype", &Attrs::dtype}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("it reads nothing"),
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
};

}  // namespace tenon::inline ops::sequence_empty_op
