#include "ops/definition/derived_gradient.h"
#include "ops/definition/elements.h"
#include "ops/definition/operand_limits.h"
#include "ops/definition/operand_shapes.h"
#include "ops/families/indexing.h"
#include "ops/families/movement.h"

namespace tenon::inline ops::roi_align_op {
namespace {

enum class RoiAlignMode { Avg, Max };

struct Attrs {
  RoiAlignMode mode = RoiAlignMode::Avg;
  std::int64_t height = 1, width = 1;
  std::int64_t sampling_ratio = 0;  // points per bin along each axis; 0: about one per pixel
  double spatial_scale = 1;
  bool half_pixel = true;  // positions refer to pixel centres
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& x = in["x"];
  require_rank("roi_align", "x", x, 4);
  require_rank("roi_align", "rois", in["rois"], 2);
  require_dims("roi_align", "rois", in["rois"], {in["rois"].dims[0], 4});
  require_dims("roi_align", "batch_indices", in["batch_indices"], {in["rois"].dims[0]});
  require_integer("roi_align", "batch_indices", in["batch_indices"]);
  require_elements(in, "x", floats);
  require_elements(in, "rois", floats);
  require_at_least("roi_align", "attribute 'height'", attrs.height, 1);
  require_at_least("roi_align", "attribute 'width'", attrs.width, 1);
  require_at_least("roi_align", "attribute 'sampling_ratio'", attrs.sampling_ratio, 0);
  const TensorType y{x.dtype, {in["rois"].dims[0], x.dims[1], attrs.height, attrs.width}, x.layout};
  require_source("roi_align", x, y);
  return y;
}

// Sample points along one axis, over the space [roi, channel, row, column, tap row, tap column].
struct Samples {
  Expr count;      // of points in a bin, as a real number
  Expr is_point;   // false for a tap after the last point
  Expr is_inside;  // false for points outside the image, which count as zero
  Expr low, high;  // neighbours, i64
  Expr fraction;   // from low to high
};

// Points are at least half a pixel apart, which bounds their number per bin on the image.
Dim tap_count(const Attrs& attrs, const Dim& extent) {
  return attrs.sampling_ratio > 0 ? Dim(attrs.sampling_ratio) : extent * 2 + 4;
}

Samples samples_along(const Attrs& attrs, const Expr& rois, const Space& space, bool is_row,
                      const Dim& extent) {
  const DType dtype = rois.dtype();
  const double offset = attrs.half_pixel ? 0.5 : 0;
  const auto corner = [&](std::int64_t column) {
    return rois.at({space[0], integer(column)}) * attrs.spatial_scale - offset;
  };
  const Expr start = corner(is_row ? 1 : 0);
  Expr length = corner(is_row ? 3 : 2) - start;
  if (!attrs.half_pixel) length = max(length, 1.0);
  const Expr bin = length / Dim(is_row ? attrs.height : attrs.width);
  const bool is_adaptive = attrs.sampling_ratio <= 0;
  const Expr count =
      is_adaptive ? ceil(bin) : literal(dtype, static_cast<double>(attrs.sampling_ratio));
  const Expr bin_start = start + cast(space[is_row ? 2 : 3], dtype) * bin;
  Expr point = cast(space[is_row ? 4 : 5], dtype);
  if (is_adaptive) {
    // Skips points far before the image, whose contribution is zero.
    const Expr spacing = bin / max(count, 1.0);
    point = point + max(floor((-2.0 - bin_start) / max(spacing, 0.25)), 0.0);
  }
  const Expr position = bin_start + (point + 0.5) * bin / max(count, 1.0);
  const Expr last = literal(dtype, 1) * (extent - 1);
  const Expr at = min(max(position, 0.0), last);
  const Expr low = floor(at);
  return {count,
          point < count,
          position >= -1.0 && position <= last + 1.0,
          cast(low, DType::I64),
          cast(min(low + 1.0, last), DType::I64),
          at - low};
}

void lower(const Attrs& attrs, Lowering& op) {
  const TensorType& y = op.result_type("y");
  const Expr x = op.operand("x");
  const DType dtype = working_dtype(x.dtype(), op.operand("rois").dtype());
  const Expr rois = cast(op.operand("rois"), dtype);
  const Space space({y.dims[0], y.dims[1], y.dims[2], y.dims[3], tap_count(attrs, x.dims()[2]),
                     tap_count(attrs, x.dims()[3])});
  const Samples rows = samples_along(attrs, rois, space, true, x.dims()[2]);
  const Samples columns = samples_along(attrs, rois, space, false, x.dims()[3]);
  const Expr image = cast(op.operand("batch_indices"), DType::I64).at({space[0]});
  const auto corner = [&](bool is_low_row, bool is_low_column) {
    const Expr pixel = x.at({image, space[1], is_low_row ? rows.low : rows.high,
                             is_low_column ? columns.low : columns.high});
    const Expr row_weight = is_low_row ? 1.0 - rows.fraction : rows.fraction;
    const Expr column_weight = is_low_column ? 1.0 - columns.fraction : columns.fraction;
    return cast(pixel, dtype) * row_weight * column_weight;
  };
  const Expr is_inside = rows.is_inside && columns.is_inside;
  const Expr is_point = rows.is_point && columns.is_point;
  const Axes taps{4, 5};
  if (attrs.mode == RoiAlignMode::Avg) {
    const Expr sample =
        corner(true, true) + corner(true, false) + corner(false, true) + corner(false, false);
    const Expr sum = sum_over(select(is_inside && is_point, sample, 0.0), taps);
    // The counts do not depend on the taps.
    const Expr count =
        max_over(broadcast(max(rows.count * columns.count, 1.0), space.dims()), taps);
    return op.define("y", cast(drop_axes(sum / count, taps), y.dtype));
  }
  // By definition of the operator, takes the maximum of the weighted neighbours instead of their
  // sum.
  const Expr sample = max(max(corner(true, true), corner(true, false)),
                          max(corner(false, true), corner(false, false)));
  const double lowest = -highest_finite(dtype);
  const Expr greatest = max_over(select(is_point, select(is_inside, sample, 0.0), lowest), taps);
  const Expr is_empty = equal(greatest, lowest);
  op.define("y", cast(drop_axes(select(is_empty, 0.0, greatest), taps), y.dtype));
}

}  // namespace

TENON_DEFINE_OP(roi_align) = OpSpec<Attrs>{
    .name = "roi_align",
    .summary = "regions of x pooled to height x width bins of interpolated points",
    .operands = {"x", "rois", "batch_indices"},
    .results = {"y"},
    .attrs = {{"mode", &Attrs::mode, words("avg max")},
              {"height", &Attrs::height},
              {"width", &Attrs::width},
              {"sampling_ratio", &Attrs::sampling_ratio},
              {"spatial_scale", &Attrs::spatial_scale},
              {"half_pixel", &Attrs::half_pixel}},
    .infer = infer,
    .lower = lower,
    .gradient = [](const Attrs&, Gradient& op) { add_derived_gradient(op, "y", "x"); },
    .layout = logical_order(),
    .examples = {"x: F n c 4 4; rois: F 2 4; batch_indices: i64 2; height = 2; width = 2"},
};

}  // namespace tenon::inline ops::roi_align_op
