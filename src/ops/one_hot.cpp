#include "expr/lowering.h"
#include "ir/assumptions.h"
#include "ops/definition/derived_gradient.h"
#include "ops/definition/elements.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_shapes.h"

namespace tenon::inline ops::one_hot_op {
namespace {

struct Attrs {
  Dim depth;
  std::int64_t axis = -1;  // axis of the result
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType &indices = in["indices"], &values = in["values"];
  require_elements(in, "indices", reals);
  require_dims("one_hot", "values", values, {2});
  if (!assume_at_most(0, attrs.depth))
    throw Error("one_hot: the depth is negative").got(attrs.depth);
  TensorType y{values.dtype, indices.dims, {}};
  const std::size_t axis = normal_axis("one_hot", attrs.axis, indices.rank() + 1);
  y.dims.insert(y.dims.begin() + static_cast<std::ptrdiff_t>(axis), attrs.depth);
  return y;
}

void lower(const Attrs& attrs, Lowering& op) {
  const Space space(op.result_type("y").dims);
  const std::size_t axis = normal_axis("one_hot", attrs.axis, space.dims().size());
  std::vector<Expr> others = space.indices();
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(axis));
  const Expr index = wrap_negative(op.operand("indices").at(others), attrs.depth);
  const Expr values = op.operand("values");
  op.define("y",
            select(equal(space[axis], index), values.at({integer(1)}), values.at({integer(0)})));
}

// Only `values` has a gradient: indices select positions.
void gradient(const Attrs&, Gradient& op) { add_derived_gradient(op, "y", "values"); }

}  // namespace

TENON_DEFINE_OP(one_hot) = OpSpec<Attrs>{
    .name = "one_hot",
    .summary = "along a new axis of extent `depth`: values[1] at the index, values[0] elsewhere",
    .operands = {"indices", "values"},
    .results = {"y"},
    .attrs = {{"depth", &Attrs::depth, dynamic_required}, {"axis", &Attrs::axis}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
    .examples = {"indices: I a; values: T 2; depth = 3"},
};

}  // namespace tenon::inline ops::one_hot_op
