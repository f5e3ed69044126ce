#include "ops/gradient.h"
#include "ops/lowering.h"
#include "ops/op_spec.h"

namespace tenon {
namespace {

TensorType infer(const NoAttrs&, const OperandTypes& in) {
  require_same_dtype("add", in["a"], in["b"]);
  return broadcast_type("add", in["a"], in["b"], in["a"].dtype);
}

void lower(const NoAttrs&, Lowering& op) { op.define("y", op.operand("a") + op.operand("b")); }

void gradient(const NoAttrs&, Gradient& op) {
  op.add("a", op.upstream("y"));
  op.add("b", op.upstream("y"));
}

}  // namespace

TENON_DEFINE_OP(add) = OpSpec<NoAttrs>{
    .name = "add",
    .summary = "a + b, broadcast; integers wrap",
    .operands = {"a", "b"},
    .results = {"y"},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .in_place = {{"y", "a"}, {"y", "b"}},
};

}  // namespace tenon
