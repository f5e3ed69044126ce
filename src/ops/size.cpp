#include "expr/lowering.h"
#include "ops/definition/op_spec.h"

namespace tenon::inline ops::size_op {
namespace {

TensorType infer(const NoAttrs&, const OperandTypes& in) {
  in["x"];  // throws if it is not a tensor
  return {DType::I64, {}, {}};
}

std::optional<Dims> known(const NoAttrs&, const OperandTypes& in) {
  return Dims{element_count(in["x"])};
}

void lower(const NoAttrs&, Lowering& op) {
  op.define("y", extent_expr(element_count(op.operand_type("x"))));
}

}  // namespace

TENON_DEFINE_OP(size) = OpSpec<NoAttrs>{
    .name = "size",
    .summary = "the number of elements of x",
    .operands = {"x"},
    .results = {"y"},
    .infer = infer,
    .known = known,
    .lower = lower,
    .gradient = not_differentiable("it reads extents, not elements"),
    .layout = any_layout(),
    .precision = Precision::MovesOnly,
};

}  // namespace tenon::inline ops::size_op
