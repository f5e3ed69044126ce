#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"

namespace tenon::inline ops::string_concat_op {
namespace {

TensorType infer(const NoAttrs&, const OperandTypes& in) {
  require_strings("string_concat", in["a"]);
  require_strings("string_concat", in["b"]);
  return broadcast_type("string_concat", in["a"], in["b"], DType::String);
}

// Returns the element of `x` that is broadcast to `index` of `shape`.
std::size_t broadcast_source(const Tensor& x, const Shape& shape, std::int64_t index) {
  std::int64_t source = 0, stride = 1;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    const std::int64_t extent = shape[shape.size() - 1 - k];
    if (k < x.rank()) {
      const std::int64_t own = x.shape()[x.rank() - 1 - k];
      if (own != 1) source += index % extent * stride;
      stride *= own;
    }
    index /= extent;
  }
  return static_cast<std::size_t>(source);
}

void evaluate(const NoAttrs&, Evaluation& op) {
  const Tensor &a = op.tensor("a"), &b = op.tensor("b");
  const Shape shape =
      constants(broadcast_type("string_concat", a.type(), b.type(), DType::String).dims);
  Tensor y(DType::String, shape);
  for (std::int64_t index = 0; index < y.size(); ++index) {
    y.mutable_strings()[static_cast<std::size_t>(index)] =
        a.strings()[broadcast_source(a, shape, index)] +
        b.strings()[broadcast_source(b, shape, index)];
  }
  op.set("y", std::move(y));
}

}  // namespace

TENON_DEFINE_OP(string_concat) = OpSpec<NoAttrs>{
    .name = "string_concat",
    .summary = "each text of a followed by that of b, broadcast",
    .operands = {"a", "b"},
    .results = {"y"},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("it works on texts"),
    .examples = {"a: string a; b: string a"},
};

}  // namespace tenon::inline ops::string_concat_op
