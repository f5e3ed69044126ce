#include "ops/definition/operand_shapes.h"
#include "ops/families/indexing.h"

namespace tenon::inline ops::scatter_nd_op {
namespace {

struct Attrs {
  ScatterReduction reduction = ScatterReduction::None;
};

TensorType infer(const Attrs&, const OperandTypes& in) {
  const TensorType &x = in["x"], &indices = in["indices"], &updates = in["updates"];
  require_same_dtype("scatter_nd", x, updates);
  const std::size_t depth = index_depth("scatter_nd", indices);
  if (depth > x.rank() || updates.rank() != indices.rank() - 1 + x.rank() - depth) {
    throw Error("scatter_nd: the updates do not fit what the indices name")
        .expected("updates of shape indices.shape[:-1] + x.shape[indices.shape[-1]:]")
        .got("x: ", x, ", indices: ", indices, ", updates: ", updates);
  }
  Dims named(indices.dims.begin(), indices.dims.end() - 1);
  named.insert(named.end(), x.dims.begin() + static_cast<std::ptrdiff_t>(depth), x.dims.end());
  require_dims("scatter_nd", "updates", updates, named);
  return x;
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x"), updates = op.operand("updates");
  const Space space(updates.dims());
  op.define("y",
            scatter_by(attrs.reduction, x,
                       indexed_coordinates(space, op.operand("indices"), x.dims(), 0), updates));
}

void gradient(const Attrs& attrs, Gradient& op) {
  scatter_gradient(attrs.reduction, op, "gather_nd", "scatter_nd", {});
}

}  // namespace

TENON_DEFINE_OP(scatter_nd) = OpSpec<Attrs>{
    .name = "scatter_nd",
    .summary = "x with updates at the coordinates along the last axis of `indices`",
    .operands = {"x", "indices", "updates"},
    .results = {"y"},
    .attrs = {{"reduction", &Attrs::reduction, scatter_words()}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
    .examples = {"x: T a b; indices: I c 2; updates: T c"},
};

}  // namespace tenon::inline ops::scatter_nd_op
