#include "ops/definition/derived_gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_shapes.h"
#include "ops/families/pooling.h"

namespace tenon::inline ops::max_pool_gradient_op {
namespace {

TensorType infer(const PoolAttrs& attrs, const OperandTypes& in) {
  const TensorType y = pooled_type("max_pool_gradient", attrs, in["x"]);
  require_same_dtype("max_pool_gradient", in["x"], in["dy"]);
  require_dims("max_pool_gradient", "dy", in["dy"], y.dims);
  return in["x"];
}

// Gathers instead of scattering: every element of x sums dy over the windows whose maximum it is,
// so that elements are independent of each other.
void lower(const PoolAttrs& attrs, Lowering& op) {
  const Pooling pooling = pooling_of("max_pool_gradient", attrs, op.operand_type("x"));
  op.define("dx", spread_greatest(pooling, elements_of_greatest(pooling, op.operand("x")),
                                  op.operand("dy")));
}

}  // namespace

TENON_DEFINE_OP(max_pool_gradient) = OpSpec<PoolAttrs>{
    .name = "max_pool_gradient",
    .summary = "dy of each window, added where max_pool found the window's greatest element in x",
    .operands = {"x", "dy"},
    .results = {"dx"},
    .attrs = with_pool_fields<PoolAttrs>(),
    .infer = infer,
    .lower = lower,
    .gradient = [](const PoolAttrs&, Gradient& op) { add_derived_gradient(op, "dx"); },
    .layout = any_layout(),
    .examples = {"x: F n c 3 4; dy: F n c 2 3; kernel_shape = 2 2"},
};

}  // namespace tenon::inline ops::max_pool_gradient_op
