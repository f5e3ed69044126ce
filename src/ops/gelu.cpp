#include "ops/definition/elementwise.h"

#include <numbers>

namespace tenon::inline ops::gelu_op {
namespace {

enum class Approximate { None, Tanh };

struct Attrs {
  Approximate approximate = Approximate::None;
};

constexpr double kRootTwoOverPi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double kCubic = 0.044715;

// x times the normal CDF of x, by erf or the usual tanh approximation.
Expr value(const Attrs& attrs, const Expr& x) {
  const bool is_exact = attrs.approximate == Approximate::None;
  const Expr share = is_exact ? erf(x * (std::numbers::sqrt2 / 2))
                              : tanh(kRootTwoOverPi * (x + kCubic * x * x * x));
  return 0.5 * x * (1.0 + share);
}

Var slope(const Attrs& attrs, Var x, Var) {
  if (attrs.approximate == Approximate::None) {
    const Var share = 0.5 * (1.0 + call("erf", {x * (std::numbers::sqrt2 / 2)}));
    return share + x * call("exp", {x * x * -0.5}) * (kRootTwoOverPi / 2);
  }
  const Var share = call("tanh", {kRootTwoOverPi * (x + kCubic * x * x * x)});
  const Var inner = kRootTwoOverPi * (1.0 + 3 * kCubic * x * x);
  return 0.5 * (1.0 + share) + 0.5 * x * (1.0 - share * share) * inner;
}

}  // namespace

TENON_DEFINE_OP(gelu) = UnarySpec<Attrs>{
    .name = "gelu",
    .summary = "x times the share of the normal distribution below x",
    .attrs = {{"approximate", &Attrs::approximate, words("none tanh")}},
    .value = value,
    .slope = slope,
};

}  // namespace tenon::inline ops::gelu_op
