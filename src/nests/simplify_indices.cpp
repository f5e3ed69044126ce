#include "nests/simplify_indices.h"

#include "nests/affine.h"
#include "nests/index_map.h"
#include "nests/loop_extents.h"
#include "nests/scalar.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

namespace tenon::nests {
namespace {

// start + sum of factor * atom; an atom is a loop or any other expression that is no sum.
struct LinearSum {
  struct Term {
    Scalar atom;
    std::int64_t factor = 0;
  };
  std::vector<Term> terms;
  std::int64_t start = 0;
};

bool is_same_atom(const Scalar& a, const Scalar& b) {
  return &a.node() == &b.node() ||
         (a->kind == ScalarKind::Loop && b->kind == ScalarKind::Loop && a->id == b->id);
}

constexpr std::int64_t kMostFactor = std::int64_t{1} << 40;

bool add_terms(const Scalar& scalar, std::int64_t factor, LinearSum& sum) {
  if (factor > kMostFactor || factor < -kMostFactor) return false;
  if (scalar->kind == ScalarKind::Integer) {
    std::int64_t product = 0;
    return !__builtin_mul_overflow(scalar->integer, factor, &product) &&
           !__builtin_add_overflow(sum.start, product, &sum.start);
  }
  if (scalar->kind == ScalarKind::Binary) {
    const Scalar &a = scalar->args[0], &b = scalar->args[1];
    if (scalar->binary == BinaryOp::Add || scalar->binary == BinaryOp::Subtract)
      return add_terms(a, factor, sum) &&
             add_terms(b, scalar->binary == BinaryOp::Add ? factor : -factor, sum);
    if (scalar->binary == BinaryOp::Multiply) {
      const bool is_second = b->kind == ScalarKind::Integer;
      const Scalar& number = is_second ? b : a;
      if (number->kind == ScalarKind::Integer && std::abs(number->integer) <= kMostFactor)
        return std::abs(factor) <= 1 << 20 &&
               add_terms(is_second ? a : b, factor * number->integer, sum);
    }
  }
  for (LinearSum::Term& term : sum.terms) {
    if (!is_same_atom(term.atom, scalar)) continue;
    term.factor += factor;
    return true;
  }
  sum.terms.push_back({scalar, factor});
  return true;
}

Scalar scalar_of(const LinearSum& sum) {
  Scalar made = integer_scalar(0);
  for (const auto& [atom, factor] : sum.terms) {
    if (factor != 0) made = plus(made, times(atom, integer_scalar(factor)));
  }
  return plus(made, integer_scalar(sum.start));
}

class IndexSimplifier {
 public:
  explicit IndexSimplifier(LoopNest& nest) {
    for (const auto& [loop, extent] : loop_extents(nest.body)) {
      if (extent.is_constant()) extents_[loop] = extent.constant();
    }
  }

  Scalar simplified(ScalarNode node) const {
    Scalar whole(std::make_shared<const ScalarNode>(node));
    if (node.kind == ScalarKind::Select) {
      const auto condition = constant_condition(node.args[0]);
      return condition ? node.args[*condition ? 1 : 2] : whole;
    }
    if (node.kind != ScalarKind::Binary || node.dtype != DType::I64 ||
        node.args[0]->dtype != DType::I64)
      return whole;
    const bool is_quotient = node.binary == BinaryOp::FloorDivide;
    if (!is_quotient && node.binary != BinaryOp::Modulo) {
      // Terms that quotients left behind may now be numbers.
      return binary_scalar(node.binary, node.dtype, node.args[0], node.args[1]);
    }
    if (node.args[1]->kind != ScalarKind::Integer || node.args[1]->integer < 1) return whole;
    return divided(node.args[0], node.args[1]->integer, is_quotient).value_or(whole);
  }

 private:
  static std::optional<bool> constant_condition(const Scalar& scalar) {
    if (scalar->kind != ScalarKind::Binary || scalar->args[0]->kind != ScalarKind::Integer ||
        scalar->args[1]->kind != ScalarKind::Integer)
      return std::nullopt;
    const std::int64_t a = scalar->args[0]->integer, b = scalar->args[1]->integer;
    switch (scalar->binary) {
      case BinaryOp::Less:
        return a < b;
      case BinaryOp::LessEqual:
        return a <= b;
      case BinaryOp::Equal:
        return a == b;
      default:
        return std::nullopt;
    }
  }

  // (by * q + r) // by = q + r // by, and (by * q + r) % by = r % by.
  std::optional<Scalar> divided(const Scalar& scalar, std::int64_t by, bool is_quotient) const {
    LinearSum sum, whole, rest;
    if (!add_terms(scalar, 1, sum)) return std::nullopt;
    for (const auto& [atom, factor] : sum.terms) {
      if (factor % by == 0) {
        whole.terms.push_back({atom, factor / by});
      } else {
        rest.terms.push_back({atom, factor});
      }
    }
    const std::int64_t inside = ((sum.start % by) + by) % by;
    whole.start = (sum.start - inside) / by;
    rest.start = inside;
    const Scalar left = scalar_of(rest);
    const auto range = range_of(left, extents_);
    const bool is_below = range && range->lo >= 0 && range->hi < by;
    if (is_below) return is_quotient ? scalar_of(whole) : left;
    if (whole.terms.empty() && whole.start == 0) return std::nullopt;
    const Scalar divisor = integer_scalar(by);
    if (!is_quotient) return binary_scalar(BinaryOp::Modulo, DType::I64, left, divisor);
    return plus(scalar_of(whole), binary_scalar(BinaryOp::FloorDivide, DType::I64, left, divisor));
  }

  std::map<std::size_t, std::int64_t> extents_;
};

}  // namespace

void simplify_indices(LoopNest& nest) {
  const IndexSimplifier simplifier(nest);
  ScalarRewriter([&](ScalarNode node) {
    return simplifier.simplified(std::move(node));
  }).apply(nest.body);
}

}  // namespace tenon::nests
