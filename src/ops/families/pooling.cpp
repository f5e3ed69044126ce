#include "ops/families/pooling.h"

#include "base/error.h"
#include "ir/assumptions.h"
#include "ops/families/phase_decomposition.h"

#include <limits>

namespace tenon::inline ops {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Dims spatial(const Dims& logical) { return {logical.begin() + 2, logical.end()}; }

// Loops over y and all of each window.
PoolLoops window_loops(const Pooling& pooling) {
  Dims kernel;
  for (const Window& window : pooling.windows) kernel.push_back(window.kernel);
  return {pooling.y, pooling.y_dims, {}, kernel};
}

std::vector<LogicalIndex> coordinates_in(const PoolLoops& loops, const std::vector<Expr>& places) {
  std::vector<LogicalIndex> all{loops.n, loops.c};
  all.insert(all.end(), places.begin(), places.end());
  return all;
}

std::vector<Expr> covered_positions(const Pooling& pooling, const PoolLoops& loops) {
  std::vector<Expr> positions;
  for (std::size_t axis = 0; axis < pooling.windows.size(); ++axis) {
    positions.push_back(
        input_position(pooling.windows[axis], loops.places[axis].whole, loops.steps[axis]));
  }
  return positions;
}

Expr is_between(const Expr& value, const Dim& low, const Dim& high) {
  return value >= low && value < high;
}

Dims kernel_dims(const PoolAttrs& attrs) {
  return {attrs.kernel_shape.begin(), attrs.kernel_shape.end()};
}

}  // namespace

Pooling pooling_of(std::string_view op, const PoolAttrs& attrs, const TensorType& x) {
  Pooling pooling{AxisMap(op, x, "NC"), AxisMap(op, x, "NC"), {}, {}, {}};
  if (pooling.x.rank() < 3) {
    throw Error(concat(op, ": the image has no spatial axis"))
        .expected("x: [N, C, spatial…]")
        .got(x);
  }
  pooling.x_dims = pooling.x.logical_dims(x.dims);
  pooling.windows =
      resolve_windows(op, attrs, spatial(pooling.x_dims), kernel_dims(attrs), attrs.ceil_mode);
  pooling.y_dims = {pooling.x_dims[0], pooling.x_dims[1]};
  for (const Window& window : pooling.windows) pooling.y_dims.push_back(window.count);
  pooling.y = AxisMap(op, chosen_layout(attrs.out_layout, x.layout), pooling.y_dims.size(), "NC");
  return pooling;
}

Pooling pooling_under(std::string_view op, const PoolAttrs& attrs, const Dims& input_shape,
                      const TensorType& y) {
  const AxisMap y_map(op, y, "NC");
  const Dims y_dims = y_map.logical_dims(y.dims);
  if (input_shape.size() + 2 != y_dims.size()) {
    throw Error(concat(op, ": attribute 'input_shape' has the wrong length"))
        .expected(y_dims.size() - 2, " entries for the spatial axes")
        .got(input_shape.size());
  }
  Dims x_dims{y_dims[0], y_dims[1]};
  x_dims.insert(x_dims.end(), input_shape.begin(), input_shape.end());
  const AxisMap x_map(op, chosen_layout(attrs.out_layout, y.layout), x_dims.size(), "NC");
  std::vector<Window> windows =
      resolve_windows(op, attrs, input_shape, kernel_dims(attrs), attrs.ceil_mode);
  for (std::size_t axis = 0; axis < windows.size(); ++axis) {
    if (assume_equal(y_dims[2 + axis], windows[axis].count)) continue;
    throw Error(concat(op, ": the gradient has not the extent of the pooled image"))
        .expected(windows[axis].count, " windows along spatial axis ", axis)
        .got(y);
  }
  return {x_map, y_map, x_dims, y_dims, std::move(windows)};
}

TensorType pooled_type(std::string_view op, const PoolAttrs& attrs, const TensorType& x) {
  const Pooling pooling = pooling_of(op, attrs, x);
  return {x.dtype, pooling.y.physical_dims(op, pooling.y_dims),
          chosen_layout(attrs.out_layout, x.layout)};
}

Attributes pool_attributes(const Pooling& pooling, const PoolAttrs& attrs,
                           const Layout& out_layout) {
  Attributes all = window_attributes(pooling.windows, out_layout);
  all.set("kernel_shape", kernel_dims(attrs));
  all.set("ceil_mode", attrs.ceil_mode);
  return all;
}

PoolLoops::PoolLoops(const AxisMap& result, const Dims& result_dims, const Dims& result_parts,
                     const Dims& window_extents)
    : space({}), n(Expr()), c(Expr()) {
  Dims dims;
  const std::vector<AxisLoops> loops = result.loops(dims, result_dims, result_parts);
  const std::size_t first_window_axis = dims.size();
  dims.insert(dims.end(), window_extents.begin(), window_extents.end());
  space = Space(std::move(dims));
  n = loops[0].index(space);
  c = loops[1].index(space);
  for (std::size_t axis = 2; axis < loops.size(); ++axis) {
    places.push_back(loops[axis].index(space));
  }
  for (std::size_t axis = 0; axis < window_extents.size(); ++axis) {
    steps.push_back(space[first_window_axis + axis]);
    window_axes.push_back(static_cast<std::int64_t>(first_window_axis + axis));
  }
}

Expr window_elements(const Pooling& pooling, const Expr& x, double fill) {
  const PoolLoops loops = window_loops(pooling);
  const std::vector<Expr> covered = covered_positions(pooling, loops);
  return read_padded(x, pooling.windows, pooling.x.coordinates(coordinates_in(loops, covered)),
                     fill);
}

Expr fold_windows(const Pooling& pooling, Reduction reduction, const Expr& elements) {
  Axes axes;
  for (std::size_t axis = 0; axis < pooling.windows.size(); ++axis) {
    axes.push_back(-1 - static_cast<std::int64_t>(axis));
  }
  return drop_axes(reduce(reduction, elements, axes), axes);
}

namespace {

// Loops over x, by phase if the stride exceeds 1, with the windows that cover each element.
struct WindowSpread {
  explicit WindowSpread(const Pooling& pooling)
      : phases(pooling.windows),
        extents{pooling.x_dims[0], pooling.x_dims[1]},
        loops(make_loops(pooling)),
        taps(phases.taps(loops.places, loops.steps)),
        at{loops.n, loops.c} {
    at.insert(at.end(), taps.positions.begin(), taps.positions.end());
  }

  // Sums the contributions of the windows and crops the result to x.
  Expr sum(const Pooling& pooling, const Expr& given) const {
    const Expr sums = sum_out(phases.where_covered(taps, given), loops.window_axes);
    return phases.cropped(reshape(sums, pooling.x.physical_dims("", extents)), pooling.x,
                          pooling.x_dims);
  }

  PhaseDecomposition phases;
  Dims extents;
  PoolLoops loops;
  PhaseDecomposition::Taps taps;
  std::vector<LogicalIndex> at;  // in y

 private:
  PoolLoops make_loops(const Pooling& pooling) {
    Dims parts{1, 1};
    for (const Dim& extent : phases.loop_extents()) extents.push_back(extent);
    for (const Dim& count : phases.phase_counts()) parts.push_back(count);
    return {pooling.x, extents, parts, phases.step_counts()};
  }
};

// Marks the maxima of each window. Padding may equal a maximum (zeros among u8), so positions
// exclude it.
Expr are_greatest(const Pooling& pooling, const PoolLoops& loops, const Expr& x) {
  const Expr elements = window_elements(pooling, x, -infinity);
  Expr are = !(elements < reduce(Reduction::Max, elements, loops.window_axes));
  const std::vector<Expr> covered = covered_positions(pooling, loops);
  for (std::size_t axis = 0; axis < covered.size(); ++axis) {
    are = are && is_between(covered[axis], 0, pooling.windows[axis].extent);
  }
  return are;
}

// Row-major index within the window.
Expr element_number(const Pooling& pooling, const std::vector<Expr>& elements) {
  Expr number = elements[0];
  for (std::size_t axis = 1; axis < elements.size(); ++axis) {
    number = number * pooling.windows[axis].kernel + elements[axis];
  }
  return cast(number, DType::I32);
}

}  // namespace

Expr spread_windows(const Pooling& pooling, const Expr& y) {
  const WindowSpread spread(pooling);
  return spread.sum(pooling, y.at_or(pooling.y.coordinates(spread.at), 0));
}

Expr elements_of_greatest(const Pooling& pooling, const Expr& x) {
  const PoolLoops loops = window_loops(pooling);
  const Expr none = literal(DType::I32, std::numeric_limits<std::int32_t>::max());
  const Expr number = element_number(pooling, loops.steps);
  return fold_windows(pooling, Reduction::Min,
                      select(are_greatest(pooling, loops, x), number, none));
}

Expr spread_greatest(const Pooling& pooling, const Expr& greatest, const Expr& y) {
  const WindowSpread spread(pooling);
  const std::vector<Expr> at = pooling.y.coordinates(spread.at);
  const Expr number = element_number(pooling, spread.taps.elements);
  const Expr is_it = equal(greatest.at_or(at, -1), number);
  return spread.sum(pooling, select(is_it, y.at_or(at, 0), 0.0));
}

Expr window_sizes(const Pooling& pooling, DType dtype, bool include_pads) {
  Expr sizes = literal(dtype, 1);
  for (std::size_t axis = 0; axis < pooling.windows.size(); ++axis) {
    const Window& window = pooling.windows[axis];
    const Space space({window.count, window.kernel});
    const Expr position = input_position(window, space[0], space[1]);
    const Expr counts =
        include_pads ? is_between(position, Dim(0) - window.begin, window.extent + window.end)
                     : is_between(position, 0, window.extent);
    const Expr along_axis = sum_out(cast(counts, dtype), {1});
    sizes = sizes * pooling.y.along(2 + axis, along_axis);
  }
  return sizes;
}

Expr positions_of_greatest(const Pooling& pooling, const Expr& x) {
  const PoolLoops loops = window_loops(pooling);
  const std::vector<Expr> covered = covered_positions(pooling, loops);
  Expr position = covered[0];
  for (std::size_t axis = 1; axis < covered.size(); ++axis) {
    position = position * pooling.windows[axis].extent + covered[axis];
  }
  const Expr none = integer(std::numeric_limits<std::int64_t>::max());
  return fold_windows(pooling, Reduction::Min,
                      select(are_greatest(pooling, loops, x), position, none));
}

std::vector<Expr> unflattened(const Expr& positions, const Dims& extents) {
  std::vector<Expr> coordinates(extents.size());
  Expr rest = positions;
  for (std::size_t axis = extents.size(); axis-- > 1;) {
    coordinates[axis] = mod(rest, extents[axis]);
    rest = floor_div(rest, extents[axis]);
  }
  coordinates[0] = rest;
  return coordinates;
}

}  // namespace tenon::inline ops
