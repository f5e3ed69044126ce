#include "ops/definition/evaluation.h"
#include "ops/definition/pass_through.h"

namespace tenon::inline ops::identity_op {
namespace {

// Sequences and optionals pass through too; expressions cannot describe them.
ResultTypes infer(const NoAttrs&, const OperandTypes& in) { return in.type("x"); }

void evaluate(const NoAttrs&, Evaluation& op) { op.set("y", op.datum("x")); }

}  // namespace

TENON_DEFINE_OP(identity) = OpSpec<NoAttrs>{
    .name = "identity",
    .summary = "x itself: a tensor, sequence or optional",
    .operands = {"x"},
    .results = {"y"},
    .infer = infer,
    .lower = pass_through::lower<NoAttrs>,
    .evaluate = evaluate,
    .gradient = pass_through::gradient<NoAttrs>,
    .precision = Precision::MovesOnly,
};

}  // namespace tenon::inline ops::identity_op
