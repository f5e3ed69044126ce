#include "expr/lowering.h"
#include "ir/assumptions.h"
#include "ops/definition/elements.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"
#include "ops/families/movement.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tenon::inline ops::resize_op {
namespace {

enum class ResizeMode { Nearest, Linear, Cubic };
enum class Coordinates {
  HalfPixel,
  HalfPixelSymmetric,
  PytorchHalfPixel,
  AlignCorners,
  Asymmetric,
  CropAndResize,
  HalfPixelForNearest,
};
enum class Rounding { PreferFloor, PreferCeil, Floor, Ceil };
enum class Aspect { Stretch, NotLarger, NotSmaller };

struct Attrs {
  std::vector<double> scales;  // either scales or sizes are given
  Dims sizes;
  std::vector<double> roi;         // starts, then ends, as fractions of the axis
  std::vector<std::int64_t> axes;  // empty: all
  ResizeMode mode = ResizeMode::Nearest;
  Coordinates coordinates = Coordinates::HalfPixel;
  Rounding rounding = Rounding::PreferFloor;
  Aspect aspect = Aspect::Stretch;
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  double extrapolation = 0;
};

std::vector<AttrField<Attrs>> fields() {
  return {{"scales", &Attrs::scales, dynamic},
          {"sizes", &Attrs::sizes, dynamic},
          {"roi", &Attrs::roi, dynamic},
          {"axes", &Attrs::axes},
          {"mode", &Attrs::mode, words("nearest linear cubic")},
          {"coordinates", &Attrs::coordinates,
           words("half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric "
                 "tf_crop_and_resize tf_half_pixel_for_nn")},
          {"rounding", &Attrs::rounding, words("round_prefer_floor round_prefer_ceil floor ceil")},
          {"aspect", &Attrs::aspect, words("stretch not_larger not_smaller")},
          {"cubic_a", &Attrs::cubic_a},
          {"exclude_outside", &Attrs::exclude_outside},
          {"antialias", &Attrs::antialias},
          {"extrapolation", &Attrs::extrapolation}};
}

Attributes attributes_of(const Attrs& attrs) {
  Attributes all;
  const Attrs initial;
  for (const AttrField<Attrs>& spec : fields()) {
    const ErasedField field = make_field(spec, &initial);
    all.set(field.def.name, *field.get(&attrs));
  }
  return all;
}

std::vector<std::size_t> resized_axes(const Attrs& attrs, std::size_t rank) {
  if (attrs.scales.empty() == attrs.sizes.empty()) {
    throw Error("resize: one of scales and sizes is needed");
  }
  const std::size_t count = attrs.scales.empty() ? attrs.sizes.size() : attrs.scales.size();
  if (attrs.axes.empty() && count != rank) {
    throw Error("resize: scales or sizes are needed for each axis").expected(rank).got(count);
  }
  const bool crops = attrs.coordinates == Coordinates::CropAndResize;
  if (crops && attrs.roi.size() != 2 * count) {
    throw Error("resize: the region needs a start and an end for each axis")
        .expected(2 * count, " numbers")
        .got(attrs.roi.size());
  }
  return axes_in_order("resize", attrs.axes, count, rank);
}

double region_start(const Attrs& attrs, std::size_t k) {
  return attrs.coordinates == Coordinates::CropAndResize ? attrs.roi[k] : 0;
}
double region_end(const Attrs& attrs, std::size_t k) {
  return attrs.coordinates == Coordinates::CropAndResize ? attrs.roi[attrs.roi.size() / 2 + k] : 1;
}

// Extents are computed in doubles; larger scales are not plausible.
constexpr double kMaxScale = 0x1p31;

void require_scales(const Attrs& attrs) {
  for (const double scale : attrs.scales) {
    if (scale >= 1 / kMaxScale && scale <= kMaxScale) continue;
    throw Error("resize: a scale is no sensible factor")
        .expected("a positive number, from 2^-31 to 2^31")
        .got(scale);
  }
  for (const double bound : attrs.roi) {
    if (std::abs(bound) <= kMaxScale) continue;
    throw Error("resize: a bound of the region is no sensible number").got(bound);
  }
  for (const Dim& size : attrs.sizes) require_at_least("resize", "a size", size, 0);
}

// Returns floor(value) if that is a valid extent.
std::int64_t whole_extent(double value) {
  const double whole = std::floor(value);
  if (whole >= 0 && whole <= static_cast<double>(kMaxExtent))
    return static_cast<std::int64_t>(whole);
  throw Error("resize: an extent of the result is negative or too large").got(whole);
}

// Returns the common scale of all axes that preserve their aspect ratio; nullopt for symbolic
// extents.
std::optional<double> common_scale(const Attrs& attrs, const Dims& extents) {
  if (!all_constant(extents) || !all_constant(attrs.sizes)) return std::nullopt;
  std::vector<double> ratios;
  for (std::size_t k = 0; k < extents.size(); ++k) {
    ratios.push_back(static_cast<double>(attrs.sizes[k].constant()) /
                     static_cast<double>(extents[k].constant()));
  }
  return attrs.aspect == Aspect::NotLarger ? *std::min_element(ratios.begin(), ratios.end())
                                           : *std::max_element(ratios.begin(), ratios.end());
}

// Returns floor(extent * factor); for a symbol only if the factor is a fraction of small numbers.
std::optional<Dim> scaled_extent(const Dim& extent, double factor) {
  if (extent.is_constant()) {
    return whole_extent(static_cast<double>(extent.constant()) * factor);
  }
  for (std::int64_t below = 1; below <= 1024; below *= 2) {
    const double above = factor * static_cast<double>(below);
    if (above == std::floor(above) && std::abs(above) <= kMaxScale)
      return floor_div(extent * static_cast<std::int64_t>(above), below);
  }
  return std::nullopt;
}

Dims extents_of(const Dims& dims, const std::vector<std::size_t>& axes) {
  Dims extents;
  for (std::size_t axis : axes) extents.push_back(dims[axis]);
  return extents;
}

// No factor maps an empty axis to one with elements, or one with elements to an empty one.
void require_factor(const Dim& before, const Dim& after) {
  if (before == after || is_unknown(before) || is_unknown(after)) return;
  if (assume_at_most(min(before, 1), after) && assume_at_most(min(after, 1), before)) return;
  throw Error("resize: one of an axis's extents is 0")
      .expected("both or neither")
      .got(before, " before and ", after, " after");
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  TensorType y = require_elements(in, "x", attrs.mode == ResizeMode::Nearest ? everything : reals);
  const std::vector<std::size_t> axes = resized_axes(attrs, y.rank());
  require_scales(attrs);
  const bool keeps_aspect = attrs.scales.empty() && attrs.aspect != Aspect::Stretch;
  const auto scale =
      keeps_aspect ? common_scale(attrs, extents_of(y.dims, axes)) : std::optional<double>();
  for (std::size_t k = 0; k < axes.size(); ++k) {
    Dim& extent = y.dims[axes[k]];
    if (!attrs.scales.empty()) {
      const double part = region_end(attrs, k) - region_start(attrs, k);
      const std::optional<Dim> scaled = scaled_extent(extent, attrs.scales[k] * part);
      extent = scaled ? *scaled : in.unknown();
      continue;
    }
    require_factor(extent, attrs.sizes[k]);
    if (!keeps_aspect) {
      extent = attrs.sizes[k];
    } else if (scale) {
      extent = whole_extent(*scale * static_cast<double>(extent.constant()) + 0.5);
    } else {
      extent = in.unknown();
    }
  }
  require_source("resize", in["x"], y);
  return y;
}

Expr real(double value) { return literal(DType::F64, value); }
Expr real(const Dim& dim) {
  return dim.is_constant() ? real(static_cast<double>(dim.constant()))
                           : cast(extent_expr(dim), DType::F64);
}

// Common scale as an expression, for symbolic extents.
Expr common_scale_expr(const Attrs& attrs, const Dims& extents) {
  Expr scale;
  for (std::size_t k = 0; k < extents.size(); ++k) {
    const Expr ratio = real(attrs.sizes[k]) / real(extents[k]);
    if (k == 0) {
      scale = ratio;
    } else {
      scale = attrs.aspect == Aspect::NotLarger ? min(scale, ratio) : max(scale, ratio);
    }
  }
  return scale;
}

// Resize of one axis: extents before and after, and the mapping from result to source positions.
struct ResizeAxis {
  std::size_t axis = 0;
  Dim before, after;
  std::optional<double> known_scale;
  Expr scale;       // f64[]
  Expr full_width;  // scale * before, not rounded
  double start = 0, end = 1;
};

std::vector<ResizeAxis> axis_maps(const Attrs& attrs, const Dims& before, const Dims& after) {
  const std::vector<std::size_t> axes = resized_axes(attrs, before.size());
  const bool keeps_aspect = attrs.scales.empty() && attrs.aspect != Aspect::Stretch;
  const Dims extents = extents_of(before, axes);
  const auto common = keeps_aspect ? common_scale(attrs, extents) : std::optional<double>();
  std::vector<ResizeAxis> maps;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    ResizeAxis map;
    map.axis = axes[k];
    map.before = before[map.axis];
    map.after = after[map.axis];
    map.start = region_start(attrs, k);
    map.end = region_end(attrs, k);
    if (!attrs.scales.empty()) {
      map.known_scale = attrs.scales[k];
    } else if (common) {
      map.known_scale = common;
    } else if (keeps_aspect) {
      map.scale = common_scale_expr(attrs, extents);
    } else if (map.before == map.after) {
      map.known_scale = 1;
    } else if (map.before.is_constant() && map.after.is_constant()) {
      map.known_scale =
          static_cast<double>(map.after.constant()) / static_cast<double>(map.before.constant());
    }
    if (map.known_scale) {
      map.scale = real(*map.known_scale);
    } else if (!keeps_aspect) {
      map.scale = real(map.after) / real(map.before);
    }
    map.full_width = map.known_scale && map.before.is_constant()
                         ? real(*map.known_scale * static_cast<double>(map.before.constant()))
                         : map.scale * real(map.before);
    maps.push_back(std::move(map));
  }
  return maps;
}

bool changes_nothing(const Attrs& attrs, const ResizeAxis& map) {
  return map.known_scale == 1.0 && map.start == 0 && map.end == 1 &&
         attrs.coordinates != Coordinates::HalfPixelForNearest;
}

// Returns the real source position of a result index.
Expr source_position(const Attrs& attrs, const ResizeAxis& map, const Expr& index) {
  const Expr x = cast(index, DType::F64);
  const Expr half_pixel = (x + 0.5) / map.scale - 0.5;
  const Expr is_single = equal(map.full_width, 1.0);
  switch (attrs.coordinates) {
    case Coordinates::HalfPixel:
      return half_pixel;
    case Coordinates::HalfPixelSymmetric:
      return half_pixel + real(map.before) / 2.0 * (1.0 - real(map.after) / map.full_width);
    case Coordinates::PytorchHalfPixel:
      return select(is_single, real(-0.5), half_pixel);
    case Coordinates::AlignCorners:
      return select(is_single, real(0.0), x * (real(map.before) - 1.0) / (map.full_width - 1.0));
    case Coordinates::Asymmetric:
      return x / map.scale;
    case Coordinates::CropAndResize: {
      const Expr last = real(map.before) - 1.0;
      const Expr inner = select(is_single, real(0.5), x / (map.full_width - 1.0));
      return inner * (map.end - map.start) * last + map.start * last;
    }
    case Coordinates::HalfPixelForNearest:
      return (x + 0.5) / map.scale;
  }
  return half_pixel;
}

// An integer factor needs no real numbers: blocks of equal elements.
std::optional<std::int64_t> whole_factor(const Attrs& attrs, const ResizeAxis& map) {
  if (!map.known_scale || *map.known_scale < 1 ||
      *map.known_scale != std::floor(*map.known_scale)) {
    return std::nullopt;
  }
  const bool rounds =
      attrs.rounding == Rounding::PreferFloor || attrs.rounding == Rounding::PreferCeil;
  const bool is_block =
      (attrs.coordinates == Coordinates::Asymmetric && attrs.rounding == Rounding::Floor) ||
      (attrs.coordinates == Coordinates::HalfPixel && rounds);
  return is_block ? std::optional(static_cast<std::int64_t>(*map.known_scale)) : std::nullopt;
}

Expr nearest_index(const Attrs& attrs, const ResizeAxis& map, const Expr& index) {
  if (const auto factor = whole_factor(attrs, map)) return floor_div(index, Dim(*factor));
  const Expr position = source_position(attrs, map, index);
  const auto rounded = [&]() -> Expr {
    switch (attrs.rounding) {
      case Rounding::PreferFloor:
        return ceil(position - 0.5);
      case Rounding::PreferCeil:
        return floor(position + 0.5);
      case Rounding::Floor:
        return floor(position);
      case Rounding::Ceil:
        return ceil(position);
    }
    return position;
  };
  return clamp_to_axis(cast(rounded(), DType::I64), map.before);
}

// Space of one axis that broadcasts against the whole, so that expressions of this axis are
// computed once.
Space axis_space(const ResizeAxis& map, std::size_t rank, std::optional<Dim> taps) {
  Dims dims(rank - map.axis, Dim(1));
  dims.front() = map.after;
  if (taps) dims.push_back(*taps);
  return Space(std::move(dims));
}

Expr kernel(const Attrs& attrs, const Expr& distance) {
  if (attrs.mode == ResizeMode::Cubic) return cubic_weight(distance, attrs.cubic_a);
  return max(1.0 - abs(distance), 0.0);
}

Dim tap_count(const Attrs& attrs, const ResizeAxis& map) {
  const std::int64_t radius = attrs.mode == ResizeMode::Cubic ? 2 : 1;
  if (!attrs.antialias) return 2 * radius;
  if (!map.known_scale) {
    // An extent that was rounded to preserve the aspect ratio is less precise about the scale.
    const std::int64_t more = attrs.aspect == Aspect::Stretch ? 0 : 1;
    return (max(ceil_div(map.before * radius, map.after), radius) + more) * 2;
  }
  // At a smaller scale the result is empty.
  const double scale = std::clamp(*map.known_scale, 1 / kMaxScale, 1.0);
  return 2 * static_cast<std::int64_t>(std::ceil(static_cast<double>(radius) / scale));
}

// Separable interpolation: weights the elements around each position along one axis, over a tap
// axis that is summed.
Expr interpolated(const Attrs& attrs, const ResizeAxis& map, const Expr& x) {
  const Dim taps = tap_count(attrs, map);
  const Space own = axis_space(map, x.rank(), taps);
  const Expr position = source_position(attrs, map, own[0]);
  const Expr tap =
      cast(floor(position), DType::I64) + own[own.dims().size() - 1] - (floor_div(taps, 2) - 1);
  Expr distance = cast(tap, DType::F64) - position;
  if (attrs.antialias) distance = distance * min(map.scale, 1.0);
  Expr weight = kernel(attrs, distance);
  if (attrs.exclude_outside) {
    weight = select(tap >= 0.0 && tap < map.before, weight, 0.0);
  }
  if (attrs.exclude_outside || attrs.antialias) weight = weight / sum_over(weight, -1);
  Dims dims = x.dims();
  dims[map.axis] = map.after;
  dims.push_back(taps);
  const Space whole(dims);
  std::vector<Expr> coordinates = whole.indices();
  coordinates.pop_back();
  coordinates[map.axis] = clamp_to_axis(tap, map.before);
  return sum_out(x.at(std::move(coordinates)) * cast(weight, x.dtype()), {-1});
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const TensorType& y = op.result_type("y");
  std::vector<ResizeAxis> maps = axis_maps(attrs, x.dims(), y.dims);
  std::erase_if(maps, [&](const ResizeAxis& map) { return changes_nothing(attrs, map); });
  Expr value = x;
  if (attrs.mode == ResizeMode::Nearest) {
    std::vector<Expr> coordinates = Space(y.dims).indices();
    for (const ResizeAxis& map : maps) {
      const Space own = axis_space(map, x.rank(), std::nullopt);
      coordinates[map.axis] = nearest_index(attrs, map, own[0]);
    }
    value = x.at(std::move(coordinates));
  } else {
    value = cast(x, working_dtype(x.dtype(), DType::F32));
    // Interpolation along the last axis gathers single elements, along other axes it reads whole
    // rows: the last axis comes while there are few rows. Shrinking axes come before growing ones.
    const auto growing = std::stable_partition(maps.begin(), maps.end(), [](const ResizeAxis& map) {
      return map.known_scale.value_or(2) < 1;
    });
    std::reverse(growing, maps.end());
    for (const ResizeAxis& map : maps) value = interpolated(attrs, map, value);
    value = cast(value, y.dtype);
  }
  if (attrs.coordinates == Coordinates::CropAndResize) {
    for (const ResizeAxis& map : maps) {
      const Expr position = source_position(attrs, map, axis_space(map, x.rank(), std::nullopt)[0]);
      const Expr is_inside = position >= 0.0 && position <= real(map.before) - 1.0;
      value = select(is_inside, value, attrs.extrapolation);
    }
  }
  op.define("y", value);
}

// Returns the matrix [before, after] that resizes one axis, by resizing unit vectors.
Var axis_matrix(const Attrs& attrs, const ResizeAxis& map, Gradient& op, DType dtype) {
  Builder& build = op.build();
  const Shape square{map.before.constant(), map.before.constant()};
  const Var zeros = build.constant(Constant::splat(Tensor::scalar(dtype, 0), square));
  Attrs own = attrs;
  own.axes = {1};
  own.extrapolation = 0;
  own.aspect = Aspect::Stretch;
  own.roi = {map.start, map.end};
  own.scales.assign(attrs.scales.empty() ? 0 : 1, map.known_scale.value_or(1));
  own.sizes.assign(attrs.scales.empty() ? 1 : 0, map.after);
  return call_with("resize", {build.call("eye_like", {zeros})}, attributes_of(own));
}

// Resizing is linear and separable, so the gradient applies the transposed matrix of each axis.
void gradient(const Attrs& attrs, Gradient& op) {
  const TensorType x = op.operand_type("x"), y = op.result_type("y");
  if (attrs.aspect != Aspect::Stretch || !all_constant(x.dims) || !all_constant(y.dims)) {
    throw Error("resize: the gradient needs known extents and no aspect", ErrorKind::Unsupported);
  }
  Builder& build = op.build();
  Var dx = op.upstream("y");
  for (const ResizeAxis& map : axis_maps(attrs, x.dims, y.dims)) {
    if (changes_nothing(attrs, map)) continue;
    Attr::Integers to_last(x.rank());
    std::iota(to_last.begin(), to_last.end(), 0);
    std::swap(to_last[map.axis], to_last.back());
    const Var back = build.call("transpose", {axis_matrix(attrs, map, op, x.dtype)});
    const Var moved = build.call("transpose", {dx}, {{"perm", to_last}});
    dx = build.call("transpose", {build.call("matmul", {moved, back})}, {{"perm", to_last}});
  }
  op.add("x", dx);
}

}  // namespace

TENON_DEFINE_OP(resize) = OpSpec<Attrs>{
    .name = "resize",
    .summary = "x sampled anew along some axes: nearest, linear or cubic",
    .operands = {"x"},
    .results = {"y"},
    .attrs = fields(),
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
    .examples = {"x: F n c h w; scales = 1.0 1.0 2.0 0.5", "x: F n c h w; sizes = 3 4; axes = 2 3"},
};

}  // namespace tenon::inline ops::resize_op
