#include "expr/lowering.h"
#include "ir/assumptions.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"
#include "ops/families/movement.h"

namespace tenon::inline ops::pad_op {
namespace {

enum class PadMode { Constant, Reflect, Edge, Wrap };

struct Attrs {
  Dims pads;                       // all begins, then all ends; negative: cropped
  std::vector<std::int64_t> axes;  // empty: all
  PadMode mode = PadMode::Constant;
};

struct PaddedAxis {
  std::size_t axis;
  Dim before, behind;
};

std::vector<PaddedAxis> padded_axes(const Attrs& attrs, std::size_t rank) {
  if (attrs.pads.size() % 2 != 0) {
    throw Error("pad: pads come in pairs, before and after each axis").got(attrs.pads);
  }
  const std::size_t count = attrs.pads.size() / 2;
  if (attrs.axes.empty() && count != rank) {
    throw Error("pad: pads are needed for each axis").expected(2 * rank).got(attrs.pads);
  }
  const std::vector<std::size_t> axes = axes_in_order("pad", attrs.axes, count, rank);
  std::vector<PaddedAxis> padded;
  for (std::size_t k = 0; k < count; ++k) {
    padded.push_back({axes[k], attrs.pads[k], attrs.pads[count + k]});
  }
  return padded;
}

// Extent after cropping: reflection and repetition apply to the remaining elements.
Dim remaining(const Dim& extent, const PaddedAxis& padded) {
  return extent - max(Dim(0) - padded.before, 0) - max(Dim(0) - padded.behind, 0);
}

// Padding with copies needs an element to copy.
void require_copied(const TensorType& x, const PaddedAxis& padded, const Dims& pads,
                    const Dim& padded_extent) {
  if (is_unknown(padded_extent)) return;
  if (assume_at_most(min(padded_extent, 1), remaining(x.dims[padded.axis], padded))) return;
  throw Error("pad: an axis has no element to copy").got("x: ", x, ", pads: ", pads);
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  TensorType y = in["x"];
  if (in.has("value")) {
    require_same_dtype("pad", y, in["value"]);
    require_one_element(in, "value");
  }
  for (const PaddedAxis& padded : padded_axes(attrs, y.rank())) {
    Dim& extent = y.dims[padded.axis];
    const bool is_open = is_unknown(padded.before) || is_unknown(padded.behind);
    const Dim padded_extent = is_open ? in.unknown() : extent + padded.before + padded.behind;
    if (!assume_at_most(0, padded_extent)) {
      throw Error("pad: more is cut off than there is").got("x: ", in["x"], ", pads: ", attrs.pads);
    }
    if (attrs.mode != PadMode::Constant) require_copied(in["x"], padded, attrs.pads, padded_extent);
    extent = padded_extent;
  }
  return y;
}

// Maps a position outside of `extent` elements to the element that it copies.
Expr folded_in(PadMode mode, const Expr& position, const Dim& extent) {
  if (mode == PadMode::Edge) return clamp_to_axis(position, extent);
  if (mode == PadMode::Wrap) return mod(position, extent);
  if (extent == Dim(1)) return position * 0.0;
  // Reflection at both ends has a period of two traversals.
  const Dim period = max(extent - 1, 1) * 2;
  const Expr phase = mod(position, period);
  const Expr mirrored = min(phase, period - phase);
  return extent.range().lo > 1 ? mirrored
                               : min(mirrored, extent - 1);  // one element is its own mirror
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Space space(op.result_type("y").dims);
  std::vector<Expr> coordinates = space.indices();
  bool may_be_empty = false;  // an empty result reads no element
  for (const PaddedAxis& padded : padded_axes(attrs, x.rank())) {
    Expr& coordinate = coordinates[padded.axis];
    if (attrs.mode == PadMode::Constant) {
      coordinate = coordinate - padded.before;
      continue;
    }
    const Dim cut_before = max(Dim(0) - padded.before, 0);
    const Dim extent = remaining(x.dims()[padded.axis], padded);
    may_be_empty |= extent.range().lo < 1;
    coordinate = folded_in(attrs.mode, coordinate - max(padded.before, 0), extent) + cut_before;
  }
  if (attrs.mode != PadMode::Constant && !may_be_empty)
    return op.define("y", x.at(std::move(coordinates)));
  const Expr value = op.has("value") ? reshape(op.operand("value"), {}) : literal(x.dtype(), 0);
  op.define("y", x.at_or(std::move(coordinates), value));
}

void gradient(const Attrs& attrs, Gradient& op) {
  if (attrs.mode != PadMode::Constant) {
    throw Error("pad: only padding with a constant has a gradient", ErrorKind::Unsupported);
  }
  Dims cut;
  for (const Dim& pad : attrs.pads) cut.push_back(Dim(0) - pad);
  const Dims axes(attrs.axes.begin(), attrs.axes.end());
  const Var dx = call_with("pad", {op.upstream("y")}, {{"pads", cut}, {"axes", axes}});
  op.add("x", dx);
  if (op.has("value")) {
    // The gradient of the padding value is the upstream gradient outside of x.
    Builder& build = op.build();
    const Attr::Integers all;
    const Var total =
        build.call("reduce_sum", {op.upstream("y")}, {{"axes", all}, {"keep_axes", false}});
    const Var moved = build.call("reduce_sum", {dx}, {{"axes", all}, {"keep_axes", false}});
    op.add("value", total - moved);
  }
}

}  // namespace

TENON_DEFINE_OP(pad) = OpSpec<Attrs>{
    .name = "pad",
    .summary =
        "elements added before and after axes: a value, the edge, a mirror image or a repeat",
    .operands = {"x", optional("value")},
    .results = {"y"},
    .attrs = {{"pads", &Attrs::pads, dynamic_required},
              {"axes", &Attrs::axes, dynamic},
              {"mode", &Attrs::mode, words("constant reflect edge wrap")}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
    .examples = {"x: T a b; pads = _ _ _ _", "x: F n c h w; pads = 0 0 _ _ 0 0 _ _",
                 "x: T a b; value: T; pads = _ 0 _ _"},
};

}  // namespace tenon::inline ops::pad_op
