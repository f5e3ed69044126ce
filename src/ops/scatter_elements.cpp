#include "ir/assumptions.h"
#include "ops/definition/operand_limits.h"
#include "ops/families/indexing.h"
#include "ops/families/movement.h"

namespace tenon::inline ops::scatter_elements_op {
namespace {

struct Attrs {
  std::int64_t axis = 0;
  ScatterReduction reduction = ScatterReduction::None;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType &x = in["x"], &indices = in["indices"], &updates = in["updates"];
  require_integer("scatter_elements", "indices", indices);
  require_rank("scatter_elements", "indices", indices, x.rank());
  require_rank("scatter_elements", "updates", updates, x.rank());
  require_same_dtype("scatter_elements", x, updates);
  const std::size_t along = normal_axis("scatter_elements", attrs.axis, x.rank());
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    if (axis != along) require_at_most("scatter_elements", "indices", indices, axis, x.dims[axis]);
    if (!assume_equal(indices.dims[axis], updates.dims[axis])) {
      throw Error("scatter_elements: each update needs an index").got(indices, " and ", updates);
    }
  }
  return x;
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x"), indices = op.operand("indices");
  const std::size_t axis = normal_axis("scatter_elements", attrs.axis, x.rank());
  const Expr index = wrap_negative(indices, x.dims()[axis]);
  op.define("y", scatter_by(attrs.reduction, x, with_coordinate(Space(indices.dims()), axis, index),
                            op.operand("updates")));
}

void gradient(const Attrs& attrs, Gradient& op) {
  scatter_gradient(attrs.reduction, op, "gather_elements", "scatter_elements",
                   {{"axis", attrs.axis}});
}

}  // namespace

TENON_DEFINE_OP(scatter_elements) = OpSpec<Attrs>{
    .name = "scatter_elements",
    .summary = "x with y[i, indices[i, j]] = updates[i, j], and so on for other axes",
    .operands = {"x", "indices", "updates"},
    .results = {"y"},
    .attrs = {{"axis", &Attrs::axis}, {"reduction", &Attrs::reduction, scatter_words()}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = follows_axis("axis"),
    .examples = {"x: T a b; indices: I a b; updates: T a b"},
};

}  // namespace tenon::inline ops::scatter_elements_op
