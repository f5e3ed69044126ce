#include "ops/depth_space.h"

namespace tenon {

void require_blocks(std::string_view op, const DepthSpaceAttrs& attrs, const TensorType& x,
                    const std::vector<std::pair<std::size_t, std::int64_t>>& divisors) {
  require_rank(op, "x", x, 4);
  if (attrs.block < 1) throw Error(concat(op, ": the block must be positive")).got(attrs.block);
  for (const auto& [axis, divisor] : divisors) {
    if (!provably_different(mod(x.dims[axis], divisor), 0)) continue;
    throw Error(concat(op, ": blocks do not fill the tensor"))
        .expected("a multiple of ", divisor, " at axis ", axis)
        .got(x);
  }
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
                {"mode", &DepthSpaceAttrs::mode, words({"dcr", "crd"})}},
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

}  // namespace tenon
