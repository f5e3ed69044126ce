#include "passes/rewrite/facts.h"
#include "passes/simplify/rules.h"

#include <cmath>

namespace tenon::passes::simplification {

using namespace rewrite;  // the vocabulary of rules

namespace {

// Returns whether value is a power of two with a representable reciprocal, so that x / c and x * (1
// / c) are equal before rounding.
bool has_exact_reciprocal(double value, DType dtype) {
  int exponent = 0;
  if (!std::isfinite(value) || std::abs(std::frexp(value, &exponent)) != 0.5) return false;
  const int highest = dtype == DType::F64 ? 1020 : dtype == DType::F16 ? 13 : 120;
  return std::abs(exponent) <= highest;
}

ValueId multiplied_by_reciprocal(const Match& match) {
  const Constant* divisor = match.graph().constant_of(match.value("c"));
  const TensorType* x = match.type("x");
  if (!divisor || !x || !is_float(x->dtype) || divisor->size() > 4096) return {};
  if (divisor->kind() != Constant::Kind::Dense && divisor->kind() != Constant::Kind::Splat)
    return {};
  Tensor reciprocals = divisor->stored();
  for (std::int64_t k = 0; k < reciprocals.size(); ++k) {
    const double value = reciprocals.real_at(k);
    if (!has_exact_reciprocal(value, x->dtype)) {
      match.refuse("the divisor is not a power of two: its reciprocal would be rounded");
      return {};
    }
    reciprocals.set_real(k, 1 / value);
  }
  const ValueId factor =
      match.make_constant(divisor->kind() == Constant::Kind::Splat
                              ? Constant::splat(std::move(reciprocals), divisor->shape())
                              : Constant(std::move(reciprocals)));
  match.succeed(match.value("c"), factor);
  return match.make("mul", {match.value("x"), factor});
}

}  // namespace

std::vector<Rule> arithmetic_rules() {
  return {
      // Neutral elements. Adding 0 turns a negative zero into a positive one; adding -0 does not.
      {"add(x, 0)", "x", keeps_sign_of_zero("x")},
      {"add(x, -0)", "x"},
      {"sub(x, 0)", "x"},
      {"mul(x, 1)", "x"},
      {"div(x, 1)", "x"},
      {"pow(x, 1)", "x", is_not_complex("x")},
      {"logical_and(x, 1)", "x"},
      {"logical_or(x, 0)", "x"},
      {"logical_xor(x, 0)", "x"},
      {"bit_or(x, 0)", "x"},
      {"bit_xor(x, 0)", "x"},
      // Involutions and idempotent ops.
      {"neg(neg(x))", "x"},
      {"logical_not(logical_not(x))", "x"},
      {"bit_not(bit_not(x))", "x"},
      {"abs(y: abs(_))", "y"},
      {"abs(neg(x))", "abs(x)", is_real("x")},
      {"floor/ceil/round/trunc(y: floor/ceil/round/trunc(_))", "y"},
      {"sign(y: sign(_))", "y"},
      {"logical_and/logical_or(x, x)", "x"},
      {"bit_and/bit_or(x, x)", "x"},
      {"maximum/minimum(x, x)", "x"},
      // Signs.
      {"mul(x, -1)", "neg(x)", is_not_complex("x")},
      {"div(x, -1)", "neg(x)", is_real("x")},
      {"add(x, neg(y))", "sub(x, y)"},
      {"sub(x, neg(y))", "add(x, y)"},
      {"mul(neg(x), neg(y))", "mul(x, y)", is_not_complex("x")},
      {"div(neg(x), neg(y))", "div(x, y)", is_real("x")},
      // Division and powers.
      {"div(1, x)", "reciprocal(x)", is_real("x")},
      {"div(x, c)", multiplied_by_reciprocal},
      {"pow(x, 2)", "mul(x, x)", is_real("x")},
      {"pow(x, 3)", "mul(mul(x, x), x)", is_real("x")},  // rounds twice
      {"pow(x, -1)", "reciprocal(x)", is_real("x")},
      {"pow(x, 0.5)", "sqrt(x)", never_negative("x")},  // -0 and -inf have other roots
  };
}

}  // namespace tenon::passes::simplification
