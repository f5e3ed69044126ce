#include "expr/lowering.h"
#include "ops/definition/derived_gradient.h"
#include "ops/definition/elements.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"
#include "ops/definition/operand_shapes.h"
#include "ops/families/movement.h"

#include <limits>

namespace tenon::inline ops::max_roi_pool_op {
namespace {

struct Attrs {
  std::int64_t height = 1, width = 1;
  double spatial_scale = 1;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& x = in["x"];
  require_rank("max_roi_pool", "x", x, 4);
  require_rank("max_roi_pool", "rois", in["rois"], 2);
  require_dims("max_roi_pool", "rois", in["rois"], {in["rois"].dims[0], 5});
  require_elements(in, "x", reals);
  require_elements(in, "rois", floats);
  require_at_least("max_roi_pool", "attribute 'height'", attrs.height, 1);
  require_at_least("max_roi_pool", "attribute 'width'", attrs.width, 1);
  return {x.dtype, {in["rois"].dims[0], x.dims[1], attrs.height, attrs.width}, x.layout};
}

Expr rounded_away(const Expr& x) { return select(x < 0.0, -floor(0.5 - x), floor(x + 0.5)); }

// Returns whether the position along one axis of the image lies in the bin, over the space [roi,
// channel, row, column, image row, image column].
Expr is_in_bin(const Attrs& attrs, const Expr& rois, const Space& space, bool is_row) {
  const auto corner = [&](std::int64_t column) {
    return rounded_away(rois.at({space[0], integer(column)}) * attrs.spatial_scale);
  };
  const Expr start = corner(is_row ? 2 : 1);
  const Expr length = max(corner(is_row ? 4 : 3) - start + 1.0, 1.0);
  const Expr bin = length / Dim(is_row ? attrs.height : attrs.width);
  const Expr index = cast(space[is_row ? 2 : 3], rois.dtype());
  const Expr position = cast(space[is_row ? 4 : 5], rois.dtype()) - start;
  return position >= floor(index * bin) && position < ceil((index + 1.0) * bin);
}

void lower(const Attrs& attrs, Lowering& op) {
  const TensorType& y = op.result_type("y");
  const Expr x = op.operand("x");
  const Expr rois = cast(op.operand("rois"), working_dtype(x.dtype(), DType::F32));
  const Space space({y.dims[0], y.dims[1], y.dims[2], y.dims[3], x.dims()[2], x.dims()[3]});
  const Expr image = cast(rois.at({space[0], integer(0)}), DType::I64);
  const Expr element = x.at({image, space[1], space[4], space[5]});
  const Expr is_inside =
      is_in_bin(attrs, rois, space, true) && is_in_bin(attrs, rois, space, false);
  const double lowest = -std::numeric_limits<double>::infinity();
  const Axes window{4, 5};
  const Expr greatest = max_over(select(is_inside, element, lowest), window);
  const Expr is_empty = !(max_over(cast(is_inside, DType::I64), window) > 0.0);
  op.define("y", drop_axes(select(is_empty, 0.0, greatest), window));
}

}  // namespace

TENON_DEFINE_OP(max_roi_pool) = OpSpec<Attrs>{
    .name = "max_roi_pool",
    .summary = "the greatest element in each of height x width bins of the regions of x",
    .operands = {"x", "rois"},
    .results = {"y"},
    .attrs = {{"height", &Attrs::height},
              {"width", &Attrs::width},
              {"spatial_scale", &Attrs::spatial_scale}},
    .infer = infer,
    .lower = lower,
    .gradient = [](const Attrs&, Gradient& op) { add_derived_gradient(op, "y", "x"); },
    .layout = logical_order(),
    .examples = {"x: F n c h w; rois: F r 5; height = 2; width = 2"},
};

}  // namespace tenon::inline ops::max_roi_pool_op
