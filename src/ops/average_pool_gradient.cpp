#include "ops/definition/op_spec.h"
#include "ops/families/convolution.h"
#include "ops/families/pooling.h"

namespace tenon::inline ops::average_pool_gradient_op {
namespace {

struct Attrs : PoolAttrs {
  bool count_include_pad = false;
  Dims input_shape;
};

constexpr std::string_view name = "average_pool_gradient";

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& dy = in["dy"];
  const Pooling pooling = pooling_under(name, attrs, attrs.input_shape, dy);
  return {dy.dtype, pooling.x.physical_dims(name, pooling.x_dims),
          chosen_layout(attrs.out_layout, dy.layout)};
}

void lower(const Attrs& attrs, Lowering& op) {
  const Pooling pooling = pooling_under(name, attrs, attrs.input_shape, op.operand_type("dy"));
  const Expr dy = op.operand("dy");
  op.define("dx", spread_windows(pooling,
                                 dy / window_sizes(pooling, dy.dtype(), attrs.count_include_pad)));
}

void gradient(const Attrs& attrs, Gradient& op) {
  const TensorType& dy = op.operand_type("dy");
  const Pooling pooling = pooling_under(name, attrs, attrs.input_shape, dy);
  Attributes back =
      pool_attributes(pooling, attrs, layout_to_ask(dy, op.result_type("dx").layout, "NC"));
  back.set("count_include_pad", attrs.count_include_pad);
  op.add("dy", call_op(op.build(), "average_pool", {op.upstream("dx")}, std::move(back)));
}

}  // namespace

TENON_DEFINE_OP(average_pool_gradient) = OpSpec<Attrs>{
    .name = "average_pool_gradient",
    .summary = "dy of each window, spread evenly over the elements that average_pool took from it",
    .operands = {"dy"},
    .results = {"dx"},
    .attrs = with_pool_fields<Attrs>({{"count_include_pad", &Attrs::count_include_pad},
                                      {"input_shape", &Attrs::input_shape, required}}),
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = any_layout(),
    .examples = {"dy: F n c 2 3; kernel_shape = 2 2; input_shape = 3 4"},
};

}  // namespace tenon::inline ops::average_pool_gradient_op
