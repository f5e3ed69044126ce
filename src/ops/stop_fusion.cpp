#include "ops/gradient.h"
#include "ops/lowering.h"
#include "ops/op_spec.h"

namespace tenon {
namespace {

TensorType infer(const NoAttrs&, const OperandTypes& in) { return in["x"]; }

void lower(const NoAttrs&, Lowering& op) { op.define("y", op.operand("x")); }

void gradient(const NoAttrs&, Gradient& op) { op.add("x", op.upstream("y")); }

}  // namespace

TENON_DEFINE_OP(stop_fusion) = OpSpec<NoAttrs>{
    .name = "stop_fusion",
    .summary = "x itself; what makes it and what reads it stay in different kernels",
    .operands = {"x"},
    .results = {"y"},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .fusion = Fusion::Opaque,
    .layout = any_layout(),
    .in_place = {{"y", "x"}},
    .precision = Precision::MovesOnly,
};

}  // namespace tenon
