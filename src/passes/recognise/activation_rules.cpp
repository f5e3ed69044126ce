#include "passes/recognise/rules.h"
#include "passes/rewrite/facts.h"

#include <cmath>

namespace tenon::passes::recognition {

using namespace rewrite;  // the vocabulary of rules

namespace {

Condition written_out() { return is_common_float("x") && alone(); }

// Matches hard_sigmoid with the slope of hard swish, 1/6 in any rounding.
bool is_sixth(const Match& match) {
  const double slope = std::get<double>(*match.attr("a")),
               shift = std::get<double>(*match.attr("b"));
  const TensorType* x = match.type(match.value("x"));
  const double near = x && x->dtype == DType::F64 ? 1e-14 : 1e-7;  // the precision of f32
  return std::abs(slope - 1.0 / 6) < near && shift == 0.5 && written_out()(match);
}

bool has_slope(const Match& match) {
  match.set("s", match.decimal("a"));
  return written_out()(match);
}

}  // namespace

std::vector<Rule> activation_rules() {
  return {
      {"reciprocal(add(exp(neg(x)), 1))", "sigmoid(x)", written_out()},
      {"div(1, add(exp(neg(x)), 1))", "sigmoid(x)", written_out()},
      // x / 2 * (1 + erf(x / sqrt(2)))
      {"mul*(x, 0.5, add(1, erf(by_root_two(x))))", "gelu(x)", written_out()},
      {"mul(x, add(0.5, mul(0.5, erf(by_root_two(x)))))", "gelu(x)", written_out()},
      // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
      {"mul*(x, 0.5, add(1, tanh(cubic(x))))", "gelu(x) {approximate = tanh}", written_out()},
      {"mul(x, add(0.5, mul(0.5, tanh(cubic(x)))))", "gelu(x) {approximate = tanh}", written_out()},
      {"mul(x, sigmoid(x))", "swish(x)", written_out()},
      {"mul(x, sigmoid(mul(x, $a)))", "swish(x) {alpha = s}", has_slope},
      {"div(x, add(1, exp(neg(x))))", "swish(x)", written_out()},
      {"mul(x, hard_sigmoid(x) {alpha = a, beta = b})", "hard_swish(x)", is_sixth},
      {"sixth_of(mul(x, clip(add(x, 3), 0, 6)))", "hard_swish(x)", written_out()},
      {"mul(x, sixth_of(clip(add(x, 3), 0, 6)))", "hard_swish(x)", written_out()},
      {"mul(sixth_of(x), clip(add(x, 3), 0, 6))", "hard_swish(x)", written_out()},
      {"mul(x, tanh(softplus(x)))", "mish(x)", written_out()},
      {"mul(x, tanh(log(add(1, exp(x)))))", "mish(x)", written_out()},
  };
}

}  // namespace tenon::passes::recognition
