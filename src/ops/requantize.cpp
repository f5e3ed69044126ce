#include "expr/lowering.h"
#include "ops/definition/elements.h"
#include "ops/definition/op_spec.h"

namespace tenon::inline ops::requantize_op {
namespace {

struct Attrs {
  /// Axis of scales and zero points with more than one element.
  std::int64_t axis = 1;
};

Dims aligned_dims(const Attrs& attrs, const TensorType& x, const TensorType& parameter) {
  if (parameter.rank() != 1 || parameter.dims[0] == Dim(1) || x.rank() < 2) return parameter.dims;
  Dims dims(x.rank(), 1);
  dims[normal_axis("requantize", attrs.axis, x.rank())] = parameter.dims[0];
  return dims;
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType &x = in["x"], &zero_point = in["zero_point"];
  if (!is_integer(x.dtype) || !is_integer(zero_point.dtype)) {
    throw Error("requantize: 'x' and 'zero_point' must hold integers")
        .got("x: ", x, ", zero_point: ", zero_point);
  }
  require_elements(in, "scale", floats);
  TensorType y{zero_point.dtype, x.dims, x.layout};
  for (const std::string_view name : {"scale", "zero_point"}) {
    TensorType parameter = in[name];
    parameter.dims = aligned_dims(attrs, x, parameter);
    y.dims = broadcast_type("requantize", {y.dtype, y.dims, {}}, parameter, y.dtype).dims;
  }
  return y;
}

// Computes in f32 like quantizers and other runtimes: rounds the sum to 24 bits, then the product.
void lower(const Attrs& attrs, Lowering& op) {
  const TensorType& x = op.operand_type("x");
  const auto aligned = [&](std::string_view name) {
    return cast(reshape(op.operand(name), aligned_dims(attrs, x, op.operand_type(name))),
                DType::F32);
  };
  const DType dtype = op.result_type("y").dtype;
  const Expr scaled = cast(op.operand("x"), DType::F32) * aligned("scale");
  const Expr shifted = round_even(scaled) + aligned("zero_point");
  const Expr bounded = min(max(shifted, static_cast<double>(lowest_integer(dtype))),
                           static_cast<double>(highest_integer(dtype)));
  op.define("y", cast(bounded, dtype));
}

}  // namespace

TENON_DEFINE_OP(requantize) = OpSpec<Attrs>{
    .name = "requantize",
    .summary = "round(x * scale) + zero_point, to even and saturated to the zero point's type",
    .operands = {"x", "scale", "zero_point"},
    .results = {"y"},
    .attrs = {{"axis", &Attrs::axis}},
    .infer = infer,
    .lower = lower,
    .gradient = not_differentiable("it rounds to integers"),
    .layout = follows_axis("axis"),
    .precision = Precision::Integer,
    .examples = {"x: i32 a b; scale: f32; zero_point: i8"},
};

}  // namespace tenon::inline ops::requantize_op
