#include "ops/evaluation.h"
#include "ops/gradient.h"
#include "ops/lowering.h"
#include "ops/op_spec.h"

namespace tenon {
namespace {

ResultTypes infer(const NoAttrs&, const OperandTypes& in) { return in.type("x"); }

void lower(const NoAttrs&, Lowering& op) { op.define("y", op.operand("x")); }

// Sequences and optionals pass through too, which no expression describes.
void evaluate(const NoAttrs&, Evaluation& op) { op.set("y", op.datum("x")); }

void gradient(const NoAttrs&, Gradient& op) { op.add("x", op.upstream("y")); }

}  // namespace

TENON_DEFINE_OP(identity) = OpSpec<NoAttrs>{
    .name = "identity",
    .summary = "x itself: a tensor, sequence or optional",
    .operands = {"x"},
    .results = {"y"},
    .infer = infer,
    .lower = lower,
    .evaluate = evaluate,
    .gradient = gradient,
    .in_place = {{"y", "x"}},
    .precision = Precision::MovesOnly,
};

}  // namespace tenon
