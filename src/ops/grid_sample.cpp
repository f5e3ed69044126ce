#include "expr/lowering.h"
#include "ir/assumptions.h"
#include "ops/definition/derived_gradient.h"
#include "ops/definition/elements.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"
#include "ops/families/movement.h"

namespace tenon::inline ops::grid_sample_op {
namespace {

enum class GridSampleMode { Linear, Nearest, Cubic };
enum class GridSamplePadding { Zeros, Border, Reflection };

struct Attrs {
  GridSampleMode mode = GridSampleMode::Linear;
  GridSamplePadding padding = GridSamplePadding::Zeros;
  bool align_corners = false;
};

constexpr double kCubicA = -0.75;

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType &x = in["x"], &grid = in["grid"];
  if (x.rank() < 3) throw Error("grid_sample: x needs a batch, channels and positions").got(x);
  require_rank("grid_sample", "grid", grid, x.rank());
  const auto axes = static_cast<std::int64_t>(x.rank()) - 2;
  if (!assume_equal(grid.dims.back(), axes) || !assume_equal(grid.dims[0], x.dims[0])) {
    throw Error("grid_sample: the grid does not fit x")
        .expected("the same batch, and ", axes, " coordinates at each point")
        .got("x: ", x, ", grid: ", grid);
  }
  TensorType y{x.dtype, {x.dims[0], x.dims[1]}, x.layout};
  y.dims.insert(y.dims.end(), grid.dims.begin() + 1, grid.dims.end() - 1);
  require_elements(in, "grid", floats);
  require_elements(in, "x", attrs.mode == GridSampleMode::Nearest ? everything : reals);
  if (attrs.padding != GridSamplePadding::Zeros) require_source("grid_sample", x, y);
  return y;
}

Expr real_extent(const Dim& extent, DType dtype) { return cast(extent_expr(extent), dtype); }

// Maps [-1, 1] to positions along an axis.
Expr denormalised(const Attrs& attrs, const Expr& coordinate, const Dim& extent) {
  if (attrs.align_corners) return (coordinate + 1.0) / 2.0 * (extent - 1);
  return ((coordinate + 1.0) * extent - 1.0) / 2.0;
}

// Moves a position outside the image inside, by the padding mode.
Expr brought_inside(const Attrs& attrs, const Expr& position, const Dim& extent) {
  if (attrs.padding == GridSamplePadding::Zeros) return position;
  const Expr count = real_extent(extent, position.dtype());
  const double margin = attrs.align_corners ? 0 : -0.5;
  const Expr highest = count - (1.0 + margin);
  const Expr is_inside = position >= margin && position <= highest;
  if (attrs.padding == GridSamplePadding::Border) {
    return select(is_inside, position, max(min(position, count - 1.0), 0.0));
  }
  // Reflects at both borders; a single pixel has zero width between them.
  const Expr width = max(highest - margin, 1.0);
  const Expr phase = mod(position - margin, width * 2.0);
  const Expr reflected = min(phase, width * 2.0 - phase) + margin;
  return select(is_inside, position, reflected);
}

// Moves an integer position inside. With zero padding it stays outside and reads 0.
Expr tap_index(const Attrs& attrs, const Expr& tap, const Dim& extent) {
  if (attrs.padding == GridSamplePadding::Zeros) return tap;
  if (attrs.padding == GridSamplePadding::Border) return clamp_to_axis(tap, extent);
  if (attrs.align_corners) {
    const Dim period = max(extent - 1, 1) * 2;
    const Expr phase = mod(tap, period);
    return min(min(phase, period - phase), extent - 1);
  }
  const Expr phase = mod(tap, extent * 2);
  return min(phase, (extent * 2 - 1) - phase);
}

struct Tap {
  Expr index, weight;
};

std::vector<Tap> taps_along(const Attrs& attrs, const Expr& coordinate, const Dim& extent) {
  const Expr given = denormalised(attrs, coordinate, extent);
  if (attrs.mode == GridSampleMode::Nearest) {
    return {{tap_index(attrs, cast(round_even(given), DType::I64), extent), Expr()}};
  }
  const Expr position = brought_inside(attrs, given, extent);
  const Expr base = floor(position);
  std::vector<Tap> taps;
  const bool is_cubic = attrs.mode == GridSampleMode::Cubic;
  for (int offset = is_cubic ? -1 : 0; offset <= (is_cubic ? 2 : 1); ++offset) {
    const Expr distance = position - (base + static_cast<double>(offset));
    const Expr weight = is_cubic ? cubic_weight(distance, kCubicA) : 1.0 - abs(distance);
    const Expr index = cast(base, DType::I64) + Dim(offset);
    taps.push_back({tap_index(attrs, index, extent), weight});
  }
  return taps;
}

void lower(const Attrs& attrs, Lowering& op) {
  const TensorType& y = op.result_type("y");
  const Expr x = op.operand("x"), grid = op.operand("grid");
  const bool is_nearest = attrs.mode == GridSampleMode::Nearest;
  const DType dtype = working_dtype(y.dtype, grid.dtype());
  const Space space(y.dims);
  const std::size_t axes = y.rank() - 2;
  std::vector<Expr> point{space[0]};
  for (std::size_t axis = 0; axis < axes; ++axis) point.push_back(space[axis + 2]);
  // Every combination of one tap per axis, with the product of their weights.
  std::vector<std::pair<std::vector<Expr>, Expr>> picks{{{space[0], space[1]}, Expr()}};
  for (std::size_t axis = 0; axis < axes; ++axis) {
    // The grid stores the last axis first.
    std::vector<Expr> place = point;
    place.push_back(integer(static_cast<std::int64_t>(axes - 1 - axis)));
    const Expr coordinate = cast(grid.at(std::move(place)), dtype);
    std::vector<std::pair<std::vector<Expr>, Expr>> next;
    for (const Tap& tap : taps_along(attrs, coordinate, x.dims()[axis + 2])) {
      for (const auto& [coordinates, weight] : picks) {
        next.emplace_back(coordinates, weight.is_defined() ? weight * tap.weight : tap.weight);
        next.back().first.push_back(tap.index);
      }
    }
    picks = std::move(next);
  }
  Expr total;
  for (auto& [coordinates, weight] : picks) {
    const Expr element = attrs.padding == GridSamplePadding::Zeros
                             ? x.at_or(std::move(coordinates), 0.0)
                             : x.at(std::move(coordinates));
    if (is_nearest) return op.define("y", element);
    const Expr term = cast(element, dtype) * weight;
    total = total.is_defined() ? total + term : term;
  }
  op.define("y", cast(total, y.dtype));
}

}  // namespace

TENON_DEFINE_OP(grid_sample) = OpSpec<Attrs>{
    .name = "grid_sample",
    .summary = "x sampled at the points of `grid`, whose coordinates run from -1 to 1",
    .operands = {"x", "grid"},
    .results = {"y"},
    .attrs = {{"mode", &Attrs::mode, words("linear nearest cubic")},
              {"padding", &Attrs::padding, words("zeros border reflection")},
              {"align_corners", &Attrs::align_corners}},
    .infer = infer,
    .lower = lower,
    .gradient = derived_gradient<Attrs>,
    .layout = logical_order(),
    .examples = {"x: F n c h w; grid: F n p q 2"},
};

}  // namespace tenon::inline ops::grid_sample_op
