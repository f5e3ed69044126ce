#include "expr/expr.h"
#include "expr/lowering.h"
#include "ops/definition/op_spec.h"

namespace tenon::inline ops::dp4a_op {
namespace {

TensorType infer(const NoAttrs&, const OperandTypes& in) {
  const TensorType &a = in["a"], &b = in["b"];
  for (const TensorType* type : {&a, &b}) {
    if (type->dtype == DType::I32) continue;
    throw Error("dp4a: four bytes lie in an i32").expected("i32").got(*type);
  }
  return broadcast_type(in.op_name(), a, b, DType::I32);
}

}  // namespace

// Named after the instruction of x86 and NVIDIA processors.
TENON_DEFINE_OP(dp4a) = OpSpec<NoAttrs>{
    .name = "dp4a",
    .summary =
        "the sum of four products of bytes, those of a without and those of b with a sign, "
        "broadcast",
    .operands = {"a", "b"},
    .results = {"y"},
    .infer = infer,
    .lower =
        [](const NoAttrs&, Lowering& op) {
          op.define("y", apply(BinaryOp::Dp4a, op.operand("a"), op.operand("b")));
        },
    .gradient = not_differentiable("it works on bits"),
    .examples = {"a: i32 a b; b: i32 a b", "a: i32 a b; b: i32 b"},
};

}  // namespace tenon::inline ops::dp4a_op
