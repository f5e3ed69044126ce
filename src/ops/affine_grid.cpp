#include "expr/lowering.h"
#include "ir/assumptions.h"
#include "ops/definition/derived_gradient.h"
#include "ops/definition/elements.h"
#include "ops/definition/op_spec.h"

namespace tenon::inline ops::affine_grid_op {
namespace {

struct Attrs {
  Dims size;  // batch, channels, then spatial extents of the grid
  bool align_corners = false;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& theta = in["theta"];
  require_rank("affine_grid", "theta", theta, 3);
  if (attrs.size.size() < 3) throw Error("affine_grid: the size has no grid").got(attrs.size);
  const auto rank = static_cast<std::int64_t>(attrs.size.size()) - 2;
  if (!assume_equal(theta.dims[1], rank) || !assume_equal(theta.dims[2], rank + 1)) {
    throw Error("affine_grid: theta does not fit the size")
        .expected("matrices of ", rank, " x ", rank + 1)
        .got(theta);
  }
  require_elements(in, "theta", floats);
  if (!assume_equal(attrs.size[0], theta.dims[0])) {
    throw Error("affine_grid: theta does not fit the size")
        .expected("one matrix for each of ", attrs.size[0], " grids")
        .got(theta);
  }
  Dims dims{theta.dims[0]};
  dims.insert(dims.end(), attrs.size.begin() + 2, attrs.size.end());
  dims.push_back(rank);
  return {theta.dtype, std::move(dims), {}};
}

// Coordinates from -1 to 1, at pixel corners (align_corners) or centres. With corners, a single
// pixel lies at 0.
Expr base_coordinate(const Expr& index, const Dim& extent, bool align_corners) {
  const Expr doubled = index * 2.0;
  if (!align_corners) return (doubled + 1.0) / extent - 1.0;
  return select(equal(cast(extent_expr(extent), index.dtype()), 1.0), 0.0,
                doubled / max(extent - 1, 1) - 1.0);
}

void lower(const Attrs& attrs, Lowering& op) {
  const TensorType& y = op.result_type("y");
  const DType dtype = y.dtype == DType::F64 ? DType::F64 : DType::F32;
  const Expr theta = cast(op.operand("theta"), dtype);
  const Space space(y.dims);
  const std::size_t rank = y.rank() - 2;
  const Expr row = space[rank + 1];
  const auto factor = [&](std::size_t column) {
    return theta.at({space[0], row, integer(static_cast<std::int64_t>(column))});
  };
  Expr total = factor(rank);
  // The first column belongs to the last axis of the grid: x before y before z.
  for (std::size_t column = 0; column < rank; ++column) {
    const std::size_t axis = rank - column;
    const Expr index = cast(space[axis], dtype);
    total = total + factor(column) * base_coordinate(index, y.dims[axis], attrs.align_corners);
  }
  op.define("y", cast(total, y.dtype));
}

}  // namespace

TENON_DEFINE_OP(affine_grid) = OpSpec<Attrs>{
    .name = "affine_grid",
    .summary = "where each point of a grid over [-1, 1] goes under the affine maps theta",
    .operands = {"theta"},
    .results = {"y"},
    .attrs = {{"size", &Attrs::size, dynamic_required}, {"align_corners", &Attrs::align_corners}},
    .infer = infer,
    .lower = lower,
    .gradient = derived_gradient<Attrs>,
    .layout = logical_order(),
    .examples = {"theta: F n 2 3; size = n c h w"},
};

}  // namespace tenon::inline ops::affine_grid_op
