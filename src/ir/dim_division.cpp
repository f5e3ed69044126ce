#include "base/error.h"
#include "ir/dim_expr.h"

#include <algorithm>
#include <numeric>

// Canonical division of dims: divides the terms that are multiples of the divisor; the remainder
// becomes an atom.
namespace tenon::inline ir {

using symbolic::Atom;
using symbolic::Factor;
using symbolic::floor_quotient;
using symbolic::Monomial;
using symbolic::Term;

namespace {

// Nested floors with a larger merged divisor stay nested, which avoids overflow.
constexpr std::int64_t kMaxMergedDivisor = std::int64_t{1} << 40;

struct Division {
  Dim quotient, remainder;
};

Dim floor_atom(const Dim& numerator, const Dim& denominator) {
  return DimExpr::of_atom(symbolic::make_atom(Atom::Kind::FloorDiv, {numerator, denominator}));
}

/// Splits expr = divisor*quotient + remainder. The remainder's coefficients lie in [0, divisor),
/// its constant in (-divisor, 0], so that floor((h - 1)/2) + 1 keeps the usual form of convolution
/// extents.
Division divide_terms(const DimExpr& expr, std::int64_t divisor) {
  DimExpr quotient, remainder;
  for (const Term& term : expr.terms) {
    const std::int64_t whole = floor_quotient(term.coefficient, divisor);
    const std::int64_t rest = term.coefficient - whole * divisor;
    if (whole != 0) quotient.terms.push_back({whole, term.factors});
    if (rest != 0) remainder.terms.push_back({rest, term.factors});
  }
  quotient.constant = floor_quotient(expr.constant, divisor);
  remainder.constant = expr.constant - quotient.constant * divisor;
  if (remainder.constant > 0) {
    ++quotient.constant;
    remainder.constant -= divisor;
  }
  return {DimExpr::wrap(std::move(quotient)), DimExpr::wrap(std::move(remainder))};
}

std::int64_t coefficient_gcd(const DimExpr& expr, std::int64_t start) {
  for (const Term& term : expr.terms) start = std::gcd(start, term.coefficient);
  return start;
}

/// Divides every coefficient by a common divisor; floors the constant.
Dim divided_exactly(DimExpr expr, std::int64_t divisor) {
  for (Term& term : expr.terms) term.coefficient /= divisor;
  expr.constant = floor_quotient(expr.constant, divisor);
  return DimExpr::wrap(std::move(expr));
}

/// Rewrites floor((floor(x/e) + y)/b) to floor((x + e*y)/(e*b)) for b > 0. Returns nullopt without
/// an inner floor.
std::optional<Dim> merged_floors(const Dim& numerator, const Dim& b) {
  const DimExpr* expr = DimExpr::inside(numerator);
  if (expr == nullptr) return std::nullopt;
  for (std::size_t i = 0; i < expr->terms.size(); ++i) {
    const Atom* floor = linear_atom(*expr, i, Atom::Kind::FloorDiv);
    if (floor == nullptr || expr->terms[i].coefficient != 1) continue;
    const Dim &x = floor->arguments[0], &e = floor->arguments[1];
    const Dim y = expr->without(i);
    // If a term is added to the floor, only numeric divisors are merged: e*y must not introduce
    // floors of its own.
    const std::int64_t inner = e.value().value_or(y == Dim(0) ? 1 : kMaxMergedDivisor);
    if (inner > kMaxMergedDivisor / b.value().value_or(1 << 20)) continue;
    return floor_div(x + e * y, e * b);
  }
  return std::nullopt;
}

Dim divide_by_number(const Dim& a, std::int64_t divisor) {
  if (divisor < 0) return divide_by_number(a * Dim(-1), symbolic::checked_multiply(divisor, -1));
  if (divisor == 1) return a;
  Dim quotient = 0, rest = a;
  while (true) {
    const Division division = divide_terms(DimExpr::of(rest), divisor);
    quotient = quotient + division.quotient;
    rest = division.remainder;
    if (rest.is_constant()) return quotient + Dim(rest.constant() < 0 ? -1 : 0);
    // floor((g*x + r)/(g*d)) = floor((x + floor(r/g))/d)
    const std::int64_t common = coefficient_gcd(*DimExpr::inside(rest), divisor);
    if (common == 1) break;
    rest = divided_exactly(DimExpr::of(rest), common);
    divisor /= common;
    if (divisor == 1) return quotient + rest;
  }
  const Range range = symbolic::floor_quotient_of(rest.range(), {divisor, divisor});
  if (range.lo == range.hi) return quotient + Dim(range.lo);
  if (const auto merged = merged_floors(rest, divisor)) return quotient + *merged;
  return quotient + floor_atom(rest, divisor);
}

/// Performs one step of long division by the leading term; returns false if no term is a multiple
/// of it.
bool divide_once(const Dim& divisor, const Term& lead, Division& division) {
  const DimExpr* rest = DimExpr::inside(division.remainder);
  if (rest == nullptr) return false;
  for (const Term& term : rest->terms) {
    const std::int64_t whole = floor_quotient(term.coefficient, lead.coefficient);
    if (whole == 0) continue;
    auto monomial = symbolic::quotient_of(term.factors, lead.factors);
    if (!monomial) continue;
    const Dim step = DimExpr::of_term({whole, std::move(*monomial)});
    division.quotient = division.quotient + step;
    division.remainder = division.remainder - step * divisor;
    return true;
  }
  return false;
}

/// Long division of polynomials. Terminates because each step only changes monomials smaller than
/// the one that it removes. Divides no term if this takes too many steps or grows too large.
Division divide_polynomials(const Dim& a, const Dim& b) {
  constexpr int kMaxSteps = 1000;
  Division division{0, a};
  try {
    for (int i = 0; i < kMaxSteps; ++i) {
      if (!divide_once(b, DimExpr::inside(b)->terms.front(), division)) return division;
    }
  } catch (const Error&) {
  }
  return {0, a};
}

/// Returns the product of all nonzero atoms that occur in every term of both.
Monomial common_factors(const DimExpr& a, const DimExpr& b) {
  Monomial common;
  if (a.constant != 0 || b.constant != 0 || a.terms.empty()) return common;
  for (Factor candidate : b.terms.front().factors) {
    if (!symbolic::excludes_zero(candidate.atom->range)) continue;
    for (const DimExpr* expr : {&a, &b}) {
      for (const Term& term : expr->terms) {
        const auto found = std::find_if(
            term.factors.begin(), term.factors.end(),
            [&](const Factor& factor) { return compare(*factor.atom, *candidate.atom) == 0; });
        candidate.power = std::min(candidate.power, found == term.factors.end() ? 0 : found->power);
      }
    }
    if (candidate.power > 0) common.push_back(candidate);
  }
  return common;
}

Dim divided_by_monomial(DimExpr expr, const Monomial& divisor) {
  DimExpr result;
  for (Term& term : expr.terms) {
    auto monomial = symbolic::quotient_of(term.factors, divisor);
    TENON_ASSERT(monomial, "a common factor divides every term");
    if (monomial->empty()) {
      result.constant = term.coefficient;
    } else {
      result.terms.push_back({term.coefficient, std::move(*monomial)});
    }
  }
  return DimExpr::wrap(std::move(result));
}

Dim divide_by_dim(const Dim& a, const Dim& b) {
  const DimExpr &divisor = *DimExpr::inside(b), dividend = DimExpr::of(a);
  if (divisor.terms.front().coefficient < 0) return floor_div(a * Dim(-1), b * Dim(-1));
  const Range range = b.range();
  std::int64_t common = coefficient_gcd(dividend, coefficient_gcd(divisor, divisor.constant));
  if (range.lo <= 0) common = std::gcd(common, dividend.constant);
  if (common > 1) {
    return floor_div(divided_exactly(dividend, common), divided_exactly(divisor, common));
  }
  if (!symbolic::excludes_zero(range)) return floor_atom(a, b);

  const Division division = divide_polynomials(a, b);
  if (division.quotient != Dim(0)) return division.quotient + floor_div(division.remainder, b);
  if (a == Dim(0)) return 0;
  if (const Monomial shared = common_factors(dividend, divisor); !shared.empty()) {
    return floor_div(divided_by_monomial(dividend, shared), divided_by_monomial(divisor, shared));
  }
  const Range quotient = symbolic::floor_quotient_of(a.range(), range);
  if (quotient.lo == quotient.hi) return quotient.lo;
  if (range.lo > 0) {
    if (const auto merged = merged_floors(a, b)) return *merged;
  }
  return floor_atom(a, b);
}

}  // namespace

std::int64_t symbolic::floor_quotient(std::int64_t a, std::int64_t b) {
  if (b == 0) throw Error("extent divided by zero").got("floor(", a, "/0)");
  if (b == -1) return checked_multiply(a, -1);
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

std::optional<symbolic::ModSplit> symbolic::split_mod(const Dim& dim) {
  const DimExpr* expr = DimExpr::inside(dim);
  if (expr == nullptr || expr->terms.size() + (expr->constant != 0) < 2) return std::nullopt;
  const auto weight = [](const DimExpr& e) { return e.terms.size() + (e.constant != 0); };
  for (const Term& term : expr->terms) {
    for (const Factor& factor : term.factors) {
      if (factor.atom->kind != Atom::Kind::FloorDiv) continue;
      const Dim &a = factor.atom->arguments[0], &b = factor.atom->arguments[1];
      const DimExpr divisor = DimExpr::of(b);
      const Term lead = divisor.terms.empty() ? Term{divisor.constant, {}} : divisor.terms.front();
      auto others = quotient_of(term.factors, {{factor.atom, 1}});
      if (others) others = quotient_of(*others, lead.factors);
      if (!others || term.coefficient % lead.coefficient != 0) continue;
      try {
        Dim scale = DimExpr::of_term({-(term.coefficient / lead.coefficient), std::move(*others)});
        Dim rest = dim - scale * (a - b * DimExpr::of_atom(factor.atom));
        if (weight(DimExpr::of(rest)) < weight(*expr)) {
          return ModSplit{std::move(rest), std::move(scale), a, b};
        }
      } catch (const Error&) {  // overflows: keep the division
      }
    }
  }
  return std::nullopt;
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (!b.is_constant()) return divide_by_dim(a, b);
  if (a.is_constant()) return floor_quotient(a.constant(), b.constant());
  if (b.constant() == 0) throw Error("extent divided by zero").got("floor((", a, ")/0)");
  return divide_by_number(a, b.constant());
}

Dim ceil_div(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) {
    const std::int64_t floor = floor_quotient(a.constant(), b.constant());
    return a.constant() % b.constant() == 0 ? floor : floor + 1;
  }
  if (b.range().lo > 0) return floor_div(a - Dim(1), b) + Dim(1);
  if (b.is_constant() && b.constant() == 0) {
    throw Error("extent divided by zero").got("ceil((", a, ")/0)");
  }
  if (b.is_constant()) return ceil_div(a * Dim(-1), b * Dim(-1));
  return floor_div(a * Dim(-1), b) * Dim(-1);
}

Dim mod(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant() && b.constant() != 0) {
    if (b.constant() == -1) return 0;
    const std::int64_t rest = a.constant() % b.constant();
    return rest != 0 && (rest < 0) != (b.constant() < 0) ? rest + b.constant() : rest;
  }
  return a - b * floor_div(a, b);
}

}  // namespace tenon::inline ir
