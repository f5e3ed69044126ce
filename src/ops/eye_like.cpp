#include "expr/lowering.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"

namespace tenon::inline ops::eye_like_op {
namespace {

struct Attrs {
  std::optional<DType> dtype;  // default: dtype of x
  std::int64_t k = 0;          // offset above the main diagonal
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  TensorType y = in["x"];
  require_rank("eye_like", "x", y, 2);
  y.dtype = attrs.dtype.value_or(y.dtype);
  require_numbers("eye_like", "dtype", y.dtype);
  return y;
}

void lower(const Attrs& attrs, Lowering& op) {
  const TensorType& y = op.result_type("y");
  const Space space(y.dims);
  op.define("y", cast(equal(space[0] + Dim(attrs.k), space[1]), y.dtype));
}

}  // namespace

TENON_DEFINE_OP(eye_like) = OpSpec<Attrs>{
    .name = "eye_like",
    .summary = "ones on the k-th diagonal, zeros elsewhere, in the shape of x",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"dtype", &Attrs::dtype}, {"k", &Attrs::k}},
    .infer = infer,
    .lower = lower,
    .gradient = not_differentiable("it reads extents, not elements"),
    .layout = logical_order(),
};

}  // namespace tenon::inline ops::eye_like_op
