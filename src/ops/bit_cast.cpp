#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"

#include <algorithm>

namespace tenon::inline ops::bit_cast_op {
namespace {

struct Attrs {
  DType to = DType::F32;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  TensorType type = in["x"];
  if (info(type.dtype).bits != info(attrs.to).bits || info(attrs.to).bits == 0) {
    throw Error("bit_cast: element types differ in width")
        .expected("an element type of ", info(type.dtype).bits, " bits")
        .got(type, " to ", attrs.to);
  }
  type.dtype = attrs.to;
  return type;
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  const Tensor& x = op.tensor("x");
  Tensor y(attrs.to, x.shape());
  const std::span<std::byte> bytes = y.mutable_bytes();
  std::ranges::copy(x.bytes(), bytes.begin());
  // A sub-byte element is sign-extended to its byte if signed, else zero-extended.
  const int bits = info(attrs.to).bits;
  if (bits < 8) {
    const int unused = 8 - bits;
    const bool is_signed = is_integer(attrs.to) && lowest_integer(attrs.to) < 0;
    for (std::byte& byte : bytes) {
      const auto high = static_cast<std::uint8_t>(std::to_integer<unsigned>(byte) << unused);
      byte = is_signed ? static_cast<std::byte>(static_cast<std::int8_t>(high) >> unused)
                       : static_cast<std::byte>(high >> unused);
    }
  }
  op.set("y", std::move(y));
}

}  // namespace

TENON_DEFINE_OP(bit_cast) = OpSpec<Attrs>{
    .name = "bit_cast",
    .summary = "the bits of x read as another element type of the same width",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"to", &Attrs::to, required}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("it works on bits"),
    .layout = any_layout(),
    .precision = Precision::MovesOnly,
    .examples = {"x: f32 a b; to = i32", "x: i16 a; to = f16"},
};

}  // namespace tenon::inline ops::bit_cast_op
