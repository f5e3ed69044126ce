#include "expr/narrowing.h"
#include "ops/definition/elementwise.h"
#include "ops/families/quantization.h"

namespace tenon::inline ops::quantize_linear_op {
namespace {

struct Attrs {
  std::int64_t axis = 1;
  std::int64_t block_size = 0;
  std::optional<DType> to;
  std::optional<DType> precision;
  bool saturate = true;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  TensorType type = require_elements(in, "x", reals);
  require_elements(in, "scale", floats);
  require_granularity(in, {attrs.axis, attrs.block_size});
  type.dtype = attrs.to.value_or(in.has("zero_point") ? in["zero_point"].dtype : DType::U8);
  if (!is_float(type.dtype) && !is_integer(type.dtype)) {
    throw Error("quantize_linear: the result must hold integers or floats").got(type.dtype);
  }
  if (attrs.precision && !is_float(*attrs.precision)) {
    throw Error("quantize_linear: attribute 'precision' must be a float").got(*attrs.precision);
  }
  if (in.has("zero_point") && in["zero_point"].dtype != type.dtype) {
    throw Error("quantize_linear: zero_point has another element type than the result")
        .expected(type.dtype)
        .got("zero_point: ", in["zero_point"]);
  }
  return type;
}

// Dtype of the rounded quotient: `precision` if set, else the dtype of scale unless that is an
// 8-bit type.
DType quotient_dtype(const Attrs& attrs, DType scale) {
  if (attrs.precision) return *attrs.precision;
  return info(scale).bits < 16 ? DType::F32 : scale;
}

void lower(const Attrs& attrs, Lowering& op) {
  const Granularity granularity{attrs.axis, attrs.block_size};
  const Expr x = op.operand("x"), scale = spread(op.operand("scale"), x, granularity);
  const DType to = op.result_type("y").dtype, rounded = quotient_dtype(attrs, scale.dtype());
  const DType computing = computing_dtype(rounded);
  const auto held = [&](const Expr& value) { return cast(cast(value, rounded), computing); };
  const Expr quotient = held(held(x) / held(scale));
  Expr zero_point = literal(computing, 0);
  if (op.has("zero_point")) {
    zero_point = cast(spread(op.operand("zero_point"), x, granularity), computing);
  }
  if (is_integer(to)) {
    const Expr whole = round_even(quotient) + zero_point;
    const double lowest = static_cast<double>(lowest_integer(to));
    const double highest = static_cast<double>(highest_integer(to));
    op.define("y", cast(min(max(whole, lowest), highest), to));
  } else {
    const Overflow overflow = attrs.saturate ? Overflow::Saturate : Overflow::Special;
    op.define("y", narrow(quotient + zero_point, to, overflow));
  }
}

}  // namespace

TENON_DEFINE_OP(quantize_linear) = OpSpec<Attrs>{
    .name = "quantize_linear",
    .summary = "x / scale, rounded and held to the range of a narrow type, from zero_point on",
    .operands = {"x", "scale", optional("zero_point")},
    .results = {"y"},
    .attrs = {{"axis", &Attrs::axis},
              {"block_size", &Attrs::block_size},
              {"to", &Attrs::to},
              {"precision", &Attrs::precision},
              {"saturate", &Attrs::saturate}},
    .infer = infer,
    .lower = lower,
    .gradient = not_differentiable("it is flat between its steps"),
    .layout = follows_axis("axis"),
    .examples = {"x: F a b; scale: F; zero_point: u8",
                 "x: F a b; scale: F b; zero_point: i8 b; axis = 1"},
};

}  // namespace tenon::inline ops::quantize_linear_op
