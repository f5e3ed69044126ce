#include "ops/families/depth_space.h"

#include "ir/assumptions.h"

namespace tenon::inline ops {
namespace {

constexpr std::int64_t kMaxBlock = std::int64_t{1} << 20;  // its square is a valid extent

}  // namespace

void require_block(std::string_view op, const DepthSpaceAttrs& attrs, const TensorType& x) {
  require_rank(op, "x", x, 4);
  if (attrs.block < 1 || attrs.block > kMaxBlock) {
    throw Error(concat(op, ": the block has no sensible size"))
        .expected("1 to ", kMaxBlock)
        .got(attrs.block);
  }
}

void require_multiple(std::string_view op, const TensorType& x, std::size_t axis,
                      std::int64_t divisor) {
  if (assume_multiple(x.dims[axis], divisor)) return;
  throw Error(concat(op, ": blocks do not fill the tensor"))
      .expected("a multiple of ", divisor, " at axis ", axis)
      .got(x);
}

OpSpec<DepthSpaceAttrs> depth_space_op(std::string name, std::string summary,
                                       InferRule<DepthSpaceAttrs> infer,
                                       void (*lower)(const DepthSpaceAttrs&, Lowering&),
                                       GradientRule<DepthSpaceAttrs> gradient) {
  return {
      .name = std::move(name),
      .summary = std::move(summary),
      .operands = {"x"},
      .results = {"y"},
      .attrs = {{"block", &DepthSpaceAttrs::block, required},
                {"mode", &DepthSpaceAttrs::mode, words("dcr crd")}},
      .infer = std::move(infer),
      .lower = lower,
      .gradient = std::move(gradient),
      .layout = logical_order(),
      .precision = Precision::MovesOnly,
  };
}

void undo(std::string_view inverse, const DepthSpaceAttrs& attrs, Gradient& op) {
  const char* mode = attrs.mode == BlockOrder::Dcr ? "dcr" : "crd";
  op.add("x",
         op.build().call(inverse, {op.upstream("y")}, {{"block", attrs.block}, {"mode", mode}}));
}

}  // namespace tenon::inline ops
