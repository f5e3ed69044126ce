#include "ops/gradient.h"
#include "ops/lowering.h"
#include "ops/op_spec.h"

namespace tenon {
namespace {

struct Attrs {
  DType dtype = DType::I8;
};

TensorType infer(const Attrs&, const OperandTypes& in) { return in["x"]; }

void lower(const Attrs&, Lowering& op) { op.define("y", op.operand("x")); }

void gradient(const Attrs&, Gradient& op) { op.add("x", op.upstream("y")); }

}  // namespace

TENON_DEFINE_OP(cast_hint) = OpSpec<Attrs>{
    .name = "cast_hint",
    .summary = "x itself; says that quantization may hold it in `dtype` here",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"dtype", &Attrs::dtype, required}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .fusion = Fusion::Opaque,
    .layout = any_layout(),
    .in_place = {{"y", "x"}},
    .precision = Precision::MovesOnly,
};

}  // namespace tenon
