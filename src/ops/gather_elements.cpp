#include "ops/definition/operand_limits.h"
#include "ops/families/indexing.h"
#include "ops/families/movement.h"

namespace tenon::inline ops::gather_elements_op {
namespace {

struct Attrs {
  std::int64_t axis = 0;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType &x = in["x"], &indices = in["indices"];
  require_integer("gather_elements", "indices", indices);
  require_rank("gather_elements", "indices", indices, x.rank());
  const std::size_t along = normal_axis("gather_elements", attrs.axis, x.rank());
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    if (axis != along) require_at_most("gather_elements", "indices", indices, axis, x.dims[axis]);
  }
  return {x.dtype, indices.dims, x.layout};
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x"), indices = op.operand("indices");
  const std::size_t axis = normal_axis("gather_elements", attrs.axis, x.rank());
  const Space space(indices.dims());
  op.define("y", x.at(with_coordinate(space, axis, wrap_negative(indices, x.dims()[axis]))));
}

void gradient(const Attrs& attrs, Gradient& op) {
  op.add("x",
         op.build().call("scatter_elements",
                         {zeros_like(op.operand("x")), op.operand("indices"), op.upstream("y")},
                         {{"axis", attrs.axis}, {"reduction", "add"}}));
}

}  // namespace

TENON_DEFINE_OP(gather_elements) = OpSpec<Attrs>{
    .name = "gather_elements",
    .summary = "y[i, j] = x[i, indices[i, j]], and so on for other axes",
    .operands = {"x", "indices"},
    .results = {"y"},
    .attrs = {{"axis", &Attrs::axis}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = follows_axis("axis"),
    .precision = Precision::MovesOnly,
    .examples = {"x: T a b; indices: I a b"},
};

}  // namespace tenon::inline ops::gather_elements_op
