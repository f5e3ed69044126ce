#include "ir/assumptions.h"
#include "ops/families/indexing.h"
#include "ops/families/movement.h"

namespace tenon::inline ops::gather_nd_op {
namespace {

struct Attrs {
  std::int64_t batch_dims = 0;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType &x = in["x"], &indices = in["indices"];
  const std::size_t depth = index_depth("gather_nd", indices);
  const auto batch = static_cast<std::size_t>(attrs.batch_dims);
  if (attrs.batch_dims < 0 || batch + depth > x.rank() || batch >= indices.rank()) {
    throw Error("gather_nd: the indices name more axes than there are")
        .expected("batch_dims + indices.shape[-1] <= rank of x")
        .got("x: ", x, ", indices: ", indices, ", batch_dims: ", attrs.batch_dims);
  }
  for (std::size_t axis = 0; axis < batch; ++axis) {
    if (assume_equal(x.dims[axis], indices.dims[axis])) continue;
    throw Error("gather_nd: batches of x and of the indices differ")
        .expected("equal extents along the first ", batch, " axes")
        .got("x: ", x, ", indices: ", indices);
  }
  Dims dims(indices.dims.begin(), indices.dims.end() - 1);
  dims.insert(dims.end(), x.dims.begin() + static_cast<std::ptrdiff_t>(batch + depth),
              x.dims.end());
  return {x.dtype, std::move(dims), {}};
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Space space(op.result_type("y").dims);
  op.define("y", x.at(indexed_coordinates(space, op.operand("indices"), x.dims(),
                                          static_cast<std::size_t>(attrs.batch_dims))));
}

void gradient(const Attrs& attrs, Gradient& op) {
  if (attrs.batch_dims != 0) {
    throw Error("gather_nd: the gradient is written for batch_dims = 0", ErrorKind::Unsupported);
  }
  op.add("x",
         op.build().call("scatter_nd",
                         {zeros_like(op.operand("x")), op.operand("indices"), op.upstream("y")},
                         {{"reduction", "add"}}));
}

}  // namespace

TENON_DEFINE_OP(gather_nd) = OpSpec<Attrs>{
    .name = "gather_nd",
    .summary = "the slices of x at the coordinates along the last axis of `indices`",
    .operands = {"x", "indices"},
    .results = {"y"},
    .attrs = {{"batch_dims", &Attrs::batch_dims}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
    .examples = {"x: T a b; indices: I c 2", "x: T a b c; indices: I a d 1; batch_dims = 1"},
};

}  // namespace tenon::inline ops::gather_nd_op
