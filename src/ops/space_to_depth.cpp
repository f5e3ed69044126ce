#include "ops/families/depth_space.h"

namespace tenon::inline ops::space_to_depth_op {
namespace {

TensorType infer(const DepthSpaceAttrs& attrs, const OperandTypes& in) {
  TensorType y = in["x"];
  require_block("space_to_depth", attrs, y);
  for (const std::size_t axis : {2, 3}) require_multiple("space_to_depth", y, axis, attrs.block);
  y.dims[1] = y.dims[1] * (attrs.block * attrs.block);
  y.dims[2] = floor_div(y.dims[2], attrs.block);
  y.dims[3] = floor_div(y.dims[3], attrs.block);
  return y;
}

void lower(const DepthSpaceAttrs& attrs, Lowering& op) {
  const Dims& x = op.operand_type("x").dims;
  const Dims& y = op.result_type("y").dims;
  const Expr parted =
      reshape(op.operand("x"), {x[0], x[1], y[2], Dim(attrs.block), y[3], Dim(attrs.block)});
  const bool depth_last = attrs.mode == BlockOrder::Dcr;
  const Expr gathered =
      depth_last ? transpose(parted, {0, 3, 5, 1, 2, 4}) : transpose(parted, {0, 1, 3, 5, 2, 4});
  op.define("y", reshape(gathered, y));
}

}  // namespace

TENON_DEFINE_OP(space_to_depth) = with_examples(
    {"x: T n c 4 2; block = 2"},
    depth_space_op(
        "space_to_depth", "blocks of block x block positions moved into the channels", infer, lower,
        +[](const DepthSpaceAttrs& attrs, Gradient& op) { undo("depth_to_space", attrs, op); }));

}  // namespace tenon::inline ops::space_to_depth_op
