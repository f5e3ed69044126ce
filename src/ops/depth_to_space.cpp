#include "ops/families/depth_space.h"

namespace tenon::inline ops::depth_to_space_op {
namespace {

TensorType infer(const DepthSpaceAttrs& attrs, const OperandTypes& in) {
  TensorType y = in["x"];
  require_block("depth_to_space", attrs, y);
  require_multiple("depth_to_space", y, 1, attrs.block * attrs.block);
  y.dims[1] = floor_div(y.dims[1], attrs.block * attrs.block);
  y.dims[2] = y.dims[2] * attrs.block;
  y.dims[3] = y.dims[3] * attrs.block;
  return y;
}

void lower(const DepthSpaceAttrs& attrs, Lowering& op) {
  const Dims& x = op.operand_type("x").dims;
  const Dims& y = op.result_type("y").dims;
  const Dim block = attrs.block;
  const bool depth_last = attrs.mode == BlockOrder::Dcr;
  const Expr parted =
      reshape(op.operand("x"), depth_last ? Dims{x[0], block, block, y[1], x[2], x[3]}
                                          : Dims{x[0], y[1], block, block, x[2], x[3]});
  const Expr woven =
      depth_last ? transpose(parted, {0, 3, 4, 1, 5, 2}) : transpose(parted, {0, 1, 4, 2, 5, 3});
  op.define("y", reshape(woven, y));
}

}  // namespace

TENON_DEFINE_OP(depth_to_space) = with_examples(
    {"x: T n 4 h w; block = 2"},
    depth_space_op(
        "depth_to_space", "channels laid out as blocks of block x block positions", infer, lower,
        +[](const DepthSpaceAttrs& attrs, Gradient& op) { undo("space_to_depth", attrs, op); }));

}  // namespace tenon::inline ops::depth_to_space_op
