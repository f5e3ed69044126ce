#include "expr/lowering.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/var_ops.h"
#include "ops/families/movement.h"

namespace tenon::inline ops::slice_op {
namespace {

struct Attrs {
  Dims starts, ends;                // negative: counted from the end
  std::vector<std::int64_t> axes;   // empty: the first ones
  std::vector<std::int64_t> steps;  // empty: 1
};

struct SlicedAxis {
  std::size_t axis;
  Dim start, end;
  std::int64_t step;
};

std::vector<SlicedAxis> sliced_axes(const Attrs& attrs, std::size_t rank) {
  const std::size_t count = attrs.starts.size();
  if (attrs.ends.size() != count || (!attrs.steps.empty() && attrs.steps.size() != count)) {
    throw Error("slice: starts, ends and steps differ in length")
        .got(count, ", ", attrs.ends.size(), " and ", attrs.steps.size());
  }
  std::vector<SlicedAxis> sliced;
  const std::vector<std::size_t> axes = axes_in_order("slice", attrs.axes, count, rank);
  for (std::size_t k = 0; k < count; ++k) {
    const std::int64_t step = attrs.steps.empty() ? 1 : attrs.steps[k];
    if (step == 0) throw Error("slice: a step is 0");
    // Clamped because the lowest integer cannot be negated.
    sliced.push_back({axes[k], attrs.starts[k], attrs.ends[k], std::max(step, -kMaxExtent)});
  }
  return sliced;
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  TensorType y = in["x"];
  for (const SlicedAxis& cut : sliced_axes(attrs, y.rank())) {
    Dim& extent = y.dims[cut.axis];
    const auto span = slice_span(cut.start, cut.end, cut.step, extent);
    extent = span ? span->count : in.unknown();
  }
  return y;
}

// For a start whose sign is only known at run time.
Expr first_position(const SlicedAxis& cut, const Dim& extent) {
  const Expr start = wrap_negative(extent_expr(cut.start), extent);
  const Dim highest = cut.step > 0 ? extent : extent - 1;
  return clamp(start, integer(0), extent_expr(highest));
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Space space(op.result_type("y").dims);
  std::vector<Expr> coordinates = space.indices();
  for (const SlicedAxis& cut : sliced_axes(attrs, x.rank())) {
    const Dim& extent = x.dims()[cut.axis];
    const auto span = slice_span(cut.start, cut.end, cut.step, extent);
    const Expr start = span ? extent_expr(span->start) : first_position(cut, extent);
    const Expr index = space[cut.axis];
    coordinates[cut.axis] = start + (cut.step == 1 ? index : index * Dim(cut.step));
  }
  op.define("y", x.at(std::move(coordinates)));
}

// Dilates one axis by `step` with zeros in between, by padding a new axis after it.
Var spread(Var value, std::size_t axis, std::int64_t step) {
  Dims dims = value.builder().type(value).tensor().dims;
  const auto at = dims.begin() + static_cast<std::ptrdiff_t>(axis);
  dims.insert(at + 1, Dim(1));
  const Var apart = reshape_to(value, dims);
  const Var padded =
      call_with("pad", {apart},
                {{"pads", Dims{0, step - 1}}, {"axes", Dims{static_cast<std::int64_t>(axis) + 1}}});
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
  dims[axis] = dims[axis] * step;
  return reshape_to(padded, dims);
}

void gradient(const Attrs& attrs, Gradient& op) {
  const TensorType x = op.operand_type("x");
  Var dx = op.upstream("y");
  for (const SlicedAxis& cut : sliced_axes(attrs, x.rank())) {
    const Dim& extent = x.dims[cut.axis];
    const auto span = slice_span(cut.start, cut.end, cut.step, extent);
    if (!span)
      throw Error("slice: the gradient needs bounds of known sign", ErrorKind::Unsupported);
    if (span->count == extent && cut.step == 1) continue;
    const Dims axes{static_cast<std::int64_t>(cut.axis)};
    Dim first = span->start;
    if (cut.step < 0) {
      first = first + (span->count - 1) * cut.step;
      dx = call_with(
          "slice", {dx},
          {{"starts", Dims{-1}}, {"ends", Dims{INT64_MIN}}, {"axes", axes}, {"steps", Dims{-1}}});
    }
    const std::int64_t stride = std::abs(cut.step);
    if (stride != 1) dx = spread(dx, cut.axis, stride);
    const Dim rest = extent - first - span->count * stride;
    dx = call_with("pad", {dx}, {{"pads", Dims{first, rest}}, {"axes", axes}});
  }
  op.add("x", dx);
}

}  // namespace

TENON_DEFINE_OP(slice) = OpSpec<Attrs>{
    .name = "slice",
    .summary = "every step-th element from start up to end, which is left out, along some axes",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"starts", &Attrs::starts, dynamic_required},
              {"ends", &Attrs::ends, dynamic_required},
              {"axes", &Attrs::axes, dynamic},
              {"steps", &Attrs::steps, dynamic}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
};

}  // namespace tenon::inline ops::slice_op
