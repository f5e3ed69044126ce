#include "ops/derived_gradient.h"
#include "ops/op_spec.h"
#include "ops/operand_shapes.h"
#include "ops/pooling.h"

namespace tenon {
namespace {

TensorType infer(const PoolAttrs& attrs, const OperandTypes& in) {
  const TensorType y = pooled_type("max_pool_gradient", attrs, in["x"]);
  require_same_dtype("max_pool_gradient", in["x"], in["dy"]);
  require_dims("max_pool_gradient", "dy", in["dy"], y.dims);
  return in["x"];
}

void lower(const PoolAttrs& attrs, Lowering& op) {
  const Pooling pooling = pooling_of("max_pool_gradient", attrs, op.operand_type("x"));
  const Expr x = op.operand("x");
  Dims dims;
  const std::vector<AxisLoops> loops = pooling.y.loops(dims, pooling.y_dims);
  const Space space(std::move(dims));
  std::vector<LogicalIndex> at{loops[0].index(space), loops[1].index(space)};
  const Dims extents(pooling.x_dims.begin() + 2, pooling.x_dims.end());
  for (Expr& coordinate : unflattened(positions_of_greatest(pooling, x), extents)) {
    at.emplace_back(std::move(coordinate));
  }
  const Expr zeros = broadcast(literal(x.dtype(), 0), x.dims());
  op.define("dx", scatter(Reduction::Sum, zeros, pooling.x.coordinates(at), op.operand("dy")));
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
};

}  // namespace tenon
