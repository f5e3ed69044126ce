#include "base/error.h"
#include "expr/random_numbers.h"
#include "ops/definition/elementwise.h"
#include "ops/definition/var_ops.h"

namespace tenon::inline ops::dropout_training_op {
namespace {

struct Attrs {
  double ratio = 0.5;
  std::int64_t seed = 0;
};

ResultTypes infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& x = require_elements(in, "x", floats);
  const TensorType& key = in["key"];
  if (key.dtype != DType::I64 || key.rank() != 0) {
    throw Error("dropout_training: the key must be one number").expected("i64[]").got(key);
  }
  if (!(attrs.ratio >= 0 && attrs.ratio < 1)) {
    throw Error("dropout_training: the ratio must be in [0, 1)").got(attrs.ratio);
  }
  return x;
}

// Random numbers are a function of key, seed and position alone (counter-based), so that
// recomputation gives the same mask without storing it.
void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Expr key = cast(op.operand("key"), DType::U64);
  const Expr is_kept = uniform_numbers(x.dims(), key, attrs.seed) >= attrs.ratio;
  op.define("y", select(is_kept, x * (1 / (1 - attrs.ratio)), 0.0));
}

// Applies the same mask to the upstream gradient.
void gradient(const Attrs& attrs, Gradient& op) {
  op.add("x", call("dropout_training", {op.upstream("y"), op.operand("key")},
                   {{"ratio", attrs.ratio}, {"seed", attrs.seed}}));
}

}  // namespace

TENON_DEFINE_OP(dropout_training) = OpSpec<Attrs>{
    .name = "dropout_training",
    .summary =
        "x / (1 - ratio) where a mask keeps it, else 0; the mask follows from `seed`, the key and "
        "the "
        "element's position",
    .operands = {"x", "key"},
    .results = {"y"},
    .attrs = {{"ratio", &Attrs::ratio}, {"seed", &Attrs::seed}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
};

}  // namespace tenon::inline ops::dropout_training_op
