#include "expr/narrowing.h"
#include "ops/definition/elementwise.h"
#include "ops/definition/var_ops.h"

namespace tenon::inline ops::cast_op {
namespace {

struct Attrs {
  DType to = DType::F32;
  bool saturate = true;
  ScaleRounding rounding = ScaleRounding::Up;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  TensorType type = in["x"];
  if (type.dtype == DType::String || attrs.to == DType::String) {
    throw Error("cast: strings are no numbers")
        .got(type, " to ", attrs.to)
        .hint("cast_text converts to and from strings");
  }
  type.dtype = attrs.to;
  return type;
}

void lower(const Attrs& attrs, Lowering& op) {
  const Overflow overflow = attrs.saturate ? Overflow::Saturate : Overflow::Special;
  op.define("y", narrow(op.operand("x"), attrs.to, overflow, attrs.rounding));
}

void gradient(const Attrs& attrs, Gradient& op) {
  const DType from = op.operand_type("x").dtype;
  if (is_float(from) && is_float(attrs.to)) op.add("x", cast_to(op.upstream("y"), from));
}

}  // namespace

TENON_DEFINE_OP(cast) = OpSpec<Attrs>{
    .name = "cast",
    .summary = "x in another element type; floats lose their fraction where they become integers",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"to", &Attrs::to, required},
              {"saturate", &Attrs::saturate},
              {"rounding", &Attrs::rounding, words("up down nearest")}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
};

}  // namespace tenon::inline ops::cast_op
