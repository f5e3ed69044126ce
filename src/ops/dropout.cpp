#include "base/error.h"
#include "ops/definition/elementwise.h"
#include "ops/definition/evaluation.h"
#include "ops/definition/var_ops.h"

#include <random>

namespace tenon::inline ops::dropout_op {
namespace {

struct Attrs {
  std::int64_t seed = 0;
};

constexpr double kUsualRatio = 0.5;

ResultTypes infer(const Attrs&, const OperandTypes& in) {
  const TensorType& x = require_elements(in, "x", floats);
  TensorType mask = x;
  mask.dtype = DType::Bool;
  return {Type(x), Type(mask)};
}

// Converts 53 random bits to a number in [0, 1) like NumPy: the same seed gives the same mask.
double next_uniform(std::mt19937& random) {
  const auto high = static_cast<double>(random() >> 5), low = static_cast<double>(random() >> 6);
  return (high * 0x1p26 + low) * 0x1p-53;
}

const Tensor& one_element(Evaluation& op, std::string_view operand) {
  const Tensor& tensor = op.tensor(operand);
  if (tensor.size() == 1) return tensor;
  throw Error(concat("dropout: operand '", operand, "' must hold one element")).got(tensor.type());
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  const Tensor& x = op.tensor("x");
  const bool is_training = !op.has("training") || one_element(op, "training").integer_at(0) != 0;
  double ratio = 0;
  if (is_training) ratio = op.has("ratio") ? one_element(op, "ratio").real_at(0) : kUsualRatio;
  Tensor y = x, mask(DType::Bool, x.shape());
  std::mt19937 random(static_cast<std::mt19937::result_type>(attrs.seed));
  for (std::int64_t k = 0; k < x.size(); ++k) {
    const bool is_kept = ratio == 0 || next_uniform(random) >= ratio;
    mask.set_integer(k, is_kept);
    if (ratio != 0) y.set_real(k, is_kept ? x.real_at(k) / (1 - ratio) : 0);
  }
  op.set("y", std::move(y));
  op.set("mask", std::move(mask));
}

void gradient(const Attrs&, Gradient& op) {
  const Var dy = op.upstream("y");
  const Var ratio = op.has("ratio") ? cast_to(op.operand("ratio"), op.operand_type("x").dtype)
                                    : number(kUsualRatio, dy);
  Var scaled = dy / (1.0 - ratio);
  if (op.has("training")) scaled = choose(op.operand("training"), scaled, dy);
  op.add("x", choose(op.result("mask"), scaled, 0));
}

}  // namespace

TENON_DEFINE_OP(dropout) = OpSpec<Attrs>{
    .name = "dropout",
    .summary = "x / (1 - ratio) where a random mask keeps it, else 0; x itself outside training",
    .operands = {"x", optional("ratio"), optional("training")},
    .results = {"y", "mask"},
    .attrs = {{"seed", &Attrs::seed}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = gradient,
    .layout = any_layout(),
    .is_random = true,
    .examples = {"x: F a b; ratio: F", "x: F a b"},
};

}  // namespace tenon::inline ops::dropout_op
