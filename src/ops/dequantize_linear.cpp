#include "ops/definition/derived_gradient.h"
#include "ops/definition/elementwise.h"
#include "ops/families/quantization.h"

namespace tenon::inline ops::dequantize_linear_op {
namespace {

struct Attrs {
  std::int64_t axis = 1;
  std::int64_t block_size = 0;
  std::optional<DType> to;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  TensorType type = require_elements(in, "x", reals);
  const TensorType& scale = require_elements(in, "scale", floats);
  require_granularity(in, {attrs.axis, attrs.block_size});
  if (in.has("zero_point")) require_same_dtype("dequantize_linear", type, in["zero_point"]);
  type.dtype = attrs.to.value_or(scale.dtype);
  if (!is_float(type.dtype)) {
    throw Error("dequantize_linear: attribute 'to' must be a float").got(type.dtype);
  }
  return type;
}

void lower(const Attrs& attrs, Lowering& op) {
  const Granularity granularity{attrs.axis, attrs.block_size};
  const Expr x = op.operand("x"), scale = spread(op.operand("scale"), x, granularity);
  const DType to = op.result_type("y").dtype;
  const DType computing = computing_dtype(to == DType::F64 ? to : scale.dtype());
  Expr offset = cast(x, computing);
  if (op.has("zero_point")) {
    offset = offset - cast(spread(op.operand("zero_point"), x, granularity), computing);
  }
  op.define("y", cast(offset * cast(scale, computing), to));
}

// Only the scale is real-valued: the other operands are quantized.
void gradient(const Attrs&, Gradient& op) { add_derived_gradient(op, "y", "scale"); }

}  // namespace

TENON_DEFINE_OP(dequantize_linear) = OpSpec<Attrs>{
    .name = "dequantize_linear",
    .summary = "(x - zero_point) * scale: the real numbers that a narrow type stands for",
    .operands = {"x", "scale", optional("zero_point")},
    .results = {"y"},
    .attrs = {{"axis", &Attrs::axis}, {"block_size", &Attrs::block_size}, {"to", &Attrs::to}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = follows_axis("axis"),
    .examples = {"x: i8 a b; scale: F", "x: u8 a b; scale: F; zero_point: u8",
                 "x: i8 a b; scale: F b; zero_point: i8 b; axis = 1"},
};

}  // namespace tenon::inline ops::dequantize_linear_op
