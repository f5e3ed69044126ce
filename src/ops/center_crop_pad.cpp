#include "expr/lowering.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/families/movement.h"

namespace tenon::inline ops::center_crop_pad_op {
namespace {

struct Attrs {
  Dims shape;
  std::vector<std::int64_t> axes;  // empty: all
};

std::vector<std::size_t> changed_axes(const Attrs& attrs, std::size_t rank) {
  return axes_in_order("center_crop_pad", attrs.axes, attrs.shape.size(), rank);
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  TensorType y = in["x"];
  const std::vector<std::size_t> axes = changed_axes(attrs, y.rank());
  for (std::size_t k = 0; k < axes.size(); ++k) y.dims[axes[k]] = attrs.shape[k];
  return y;
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Space space(op.result_type("y").dims);
  std::vector<Expr> coordinates = space.indices();
  for (std::size_t axis : changed_axes(attrs, x.rank())) {
    const Dim grown = space.dims()[axis] - x.dims()[axis];
    // For an odd difference, the smaller half is added or cropped at the front.
    const Dim added = max(floor_div(grown, 2), 0), cut = max(floor_div(Dim(0) - grown, 2), 0);
    coordinates[axis] = coordinates[axis] + (cut - added);
  }
  op.define("y", x.at_or(std::move(coordinates), 0));
}

void gradient(const Attrs& attrs, Gradient& op) {
  const TensorType x = op.operand_type("x");
  Dims shape;
  for (std::size_t axis : changed_axes(attrs, x.rank())) shape.push_back(x.dims[axis]);
  op.add("x", call_with("center_crop_pad", {op.upstream("y")},
                        {{"shape", shape}, {"axes", Dims(attrs.axes.begin(), attrs.axes.end())}}));
}

}  // namespace

TENON_DEFINE_OP(center_crop_pad) = OpSpec<Attrs>{
    .name = "center_crop_pad",
    .summary =
        "axes brought to the extents in `shape` around their middle: cut, or filled with zeros",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"shape", &Attrs::shape, dynamic_required}, {"axes", &Attrs::axes}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
    .examples = {"x: T a b; shape = c d"},
};

}  // namespace tenon::inline ops::center_crop_pad_op
