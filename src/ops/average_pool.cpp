#include "ops/definition/op_spec.h"
#include "ops/families/convolution.h"
#include "ops/families/pooling.h"

namespace tenon::inline ops::average_pool_op {
namespace {

struct Attrs : PoolAttrs {
  bool count_include_pad = false;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  return pooled_type("average_pool", attrs, in["x"]);
}

void lower(const Attrs& attrs, Lowering& op) {
  const Pooling pooling = pooling_of("average_pool", attrs, op.operand_type("x"));
  const Expr x = op.operand("x");
  const Expr sums = fold_windows(pooling, Reduction::Sum, window_elements(pooling, x, 0));
  op.define("y", sums / window_sizes(pooling, x.dtype(), attrs.count_include_pad));
}

void gradient(const Attrs& attrs, Gradient& op) {
  const TensorType& x = op.operand_type("x");
  const Pooling pooling = pooling_of("average_pool", attrs, x);
  Attributes back =
      pool_attributes(pooling, attrs, layout_to_ask(x, op.result_type("y").layout, "NC"));
  back.set("count_include_pad", attrs.count_include_pad);
  back.set("input_shape", spatial_dims(pooling.x_dims));
  op.add("x", call_op(op.build(), "average_pool_gradient", {op.upstream("y")}, std::move(back)));
}

}  // namespace

TENON_DEFINE_OP(average_pool) = OpSpec<Attrs>{
    .name = "average_pool",
    .summary = "the mean of each window of the image x, over its elements or also the padding",
    .operands = {"x"},
    .results = {"y"},
    .attrs = with_pool_fields<Attrs>({{"count_include_pad", &Attrs::count_include_pad}}),
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = any_layout(),
    .examples = {"x: F n c h w; kernel_shape = 2 2", "x: F n c h; kernel_shape = 2"},
};

}  // namespace tenon::inline ops::average_pool_op
