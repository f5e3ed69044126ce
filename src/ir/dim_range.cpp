#include "base/error.h"
#include "ir/dim_expr.h"

#include <algorithm>
#include <numeric>

// Ranges of dims by interval arithmetic over terms, tightened where terms are correlated (s -
// 2*floor(s/2) is 0 or 1, though s alone is unbounded).
namespace tenon::inline ir {

namespace symbolic {

namespace {

constexpr bool is_infinite(std::int64_t bound) {
  return bound == kNoLowerBound || bound == kNoUpperBound;
}

std::int64_t clamped(__int128 value) {
  if (value >= kNoUpperBound) return kNoUpperBound;
  if (value <= kNoLowerBound) return kNoLowerBound;
  return static_cast<std::int64_t>(value);
}

std::int64_t bound_product(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (is_infinite(a) || is_infinite(b)) return (a < 0) == (b < 0) ? kNoUpperBound : kNoLowerBound;
  return clamped(static_cast<__int128>(a) * b);
}

std::int64_t negated(std::int64_t bound) {
  return is_infinite(bound) ? (bound < 0 ? kNoUpperBound : kNoLowerBound) : -bound;
}

Range negated(Range range) { return {negated(range.hi), negated(range.lo)}; }

/// Treats atoms as independent.
Range plain_range(const Dim& dim) {
  const DimExpr* expr = DimExpr::inside(dim);
  if (expr == nullptr) return {dim.constant(), dim.constant()};
  Range total = {expr->constant, expr->constant};
  for (const Term& term : expr->terms) {
    Range range = {term.coefficient, term.coefficient};
    for (const Factor& factor : term.factors) {
      Range power = factor.atom->range;
      for (int i = 1; i < factor.power; ++i) power = product_of(power, factor.atom->range);
      if (factor.power % 2 == 0) power.lo = std::max<std::int64_t>(power.lo, 0);
      range = product_of(range, power);
    }
    total = sum_of(total, range);
  }
  return total;
}

/// Writes floor(a/b) as (a - m)/b with 0 <= m < b: then c*floor(a/b) + rest is (c*a + b*rest -
/// c*m)/b, where terms of a and of the rest may cancel.
Range range_through_floor(const DimExpr& expr, std::size_t index, const Atom& floor) {
  const Dim& denominator = floor.arguments[1];
  if (!denominator.is_constant()) return kUnbounded;
  const std::int64_t b = denominator.constant(), c = expr.terms[index].coefficient;
  const Dim numerator = floor.arguments[0] * Dim(c) + expr.without(index) * denominator;
  const Range range = sum_of(plain_range(numerator), product_of({-c, -c}, {0, b - 1}));
  return {range.lo == kNoLowerBound ? range.lo : -floor_quotient(negated(range.lo), b),
          range.hi == kNoUpperBound ? range.hi : floor_quotient(range.hi, b)};
}

Range tightened_range(const Dim& dim, int depth);

/// Bounds c*max(x, y) + rest as the max (the min, if c < 0) of c*x + rest and c*y + rest. Recurses
/// into further extrema.
Range range_through_extremum(const DimExpr& expr, std::size_t index, const Atom& extremum,
                             int depth) {
  const std::int64_t c = expr.terms[index].coefficient;
  const bool is_min = (extremum.kind == Atom::Kind::Min) == (c > 0);
  const Dim rest = expr.without(index);
  const int left = extremum.arguments.size() > 4 ? 0 : depth - 1;  // members multiply
  std::optional<Range> total;
  for (const Dim& member : extremum.arguments) {
    const Range range = tightened_range(member * Dim(c) + rest, left);
    if (!total) total = range;
    *total = is_min ? Range{std::min(total->lo, range.lo), std::min(total->hi, range.hi)}
                    : Range{std::max(total->lo, range.lo), std::max(total->hi, range.hi)};
  }
  return *total;
}

Range range_through_mod(const ModSplit& split) {
  const Range divisor = split.b.range();
  if (!excludes_zero(divisor)) return kUnbounded;
  const Range mod = divisor.lo > 0 ? Range{0, sum_of(divisor, {-1, -1}).hi}
                                   : Range{sum_of(divisor, {1, 1}).lo, 0};
  return sum_of(plain_range(split.rest), product_of(plain_range(split.scale), mod));
}

bool has_floor_in_product(const DimExpr& expr) {
  return std::any_of(expr.terms.begin(), expr.terms.end(), [](const Term& term) {
    return term.factors.size() > 1 && term.factors.back().atom->kind != Atom::Kind::Symbol;
  });
}

Range tightened_range(const Dim& dim, int depth) {
  Range range = plain_range(dim);
  if (dim.is_constant() || depth == 0) return range;
  const DimExpr& expr = *DimExpr::inside(dim);
  constexpr std::size_t kMaxTightened = 16;  // each term costs a pass over all terms
  if (expr.terms.size() < 2 || expr.terms.size() > kMaxTightened) return range;
  for (std::size_t i = 0; i < expr.terms.size(); ++i) {
    if (const Atom* floor = linear_atom(expr, i, Atom::Kind::FloorDiv)) {
      range = intersection_of(range, range_through_floor(expr, i, *floor));
    }
    for (const auto kind : {Atom::Kind::Min, Atom::Kind::Max}) {
      if (const Atom* extremum = linear_atom(expr, i, kind)) {
        range = intersection_of(range, range_through_extremum(expr, i, *extremum, depth));
      }
    }
  }
  if (has_floor_in_product(expr)) {
    if (const auto split = split_mod(dim))
      range = intersection_of(range, range_through_mod(*split));
  }
  return range;
}

}  // namespace

Range sum_of(Range a, Range b) {
  const bool is_open_below = a.lo == kNoLowerBound || b.lo == kNoLowerBound;
  const bool is_open_above = a.hi == kNoUpperBound || b.hi == kNoUpperBound;
  return {is_open_below ? kNoLowerBound : clamped(static_cast<__int128>(a.lo) + b.lo),
          is_open_above ? kNoUpperBound : clamped(static_cast<__int128>(a.hi) + b.hi)};
}

Range product_of(Range a, Range b) {
  const auto [lo, hi] = std::minmax({bound_product(a.lo, b.lo), bound_product(a.lo, b.hi),
                                     bound_product(a.hi, b.lo), bound_product(a.hi, b.hi)});
  return {lo, hi};
}

Range floor_quotient_of(Range a, Range b) {
  if (b.hi <= 0)
    return floor_quotient_of(negated(a), {negated(b.hi), std::max<std::int64_t>(negated(b.lo), 1)});
  if (b.lo < 0) {  // either sign: at most as far from zero as a
    const Range negative = negated(a);
    return {std::min(a.lo, negative.lo), std::max(a.hi, negative.hi)};
  }
  const std::int64_t least = std::max<std::int64_t>(b.lo, 1);  // a zero divisor would be an error
  const auto quotient = [](std::int64_t bound, std::int64_t divisor) {
    return is_infinite(bound) ? bound : floor_quotient(bound, divisor);
  };
  return {std::min(quotient(a.lo, least), quotient(a.lo, b.hi)),
          std::max(quotient(a.hi, least), quotient(a.hi, b.hi))};
}

Range intersection_of(Range a, Range b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }

}  // namespace symbolic

Range Dim::range() const {
  if (is_constant()) return {value_, value_};
  try {
    constexpr int kDepth = 3;  // sufficient for a slice of a slice
    return symbolic::tightened_range(*this, kDepth);
  } catch (const Error&) {  // the tighter form overflows or is too large
    return symbolic::plain_range(*this);
  }
}

bool provably_at_most(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return a.constant() <= b.constant();
  const Range x = a.range(), y = b.range();
  if (x.hi <= y.lo && x.hi != symbolic::kNoUpperBound && y.lo != symbolic::kNoLowerBound)
    return true;
  try {
    return (b - a).range().lo >= 0;
  } catch (const Error&) {
    return false;
  }
}

bool provably_different(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return a.constant() != b.constant();
  try {
    const Dim difference = a - b;
    if (symbolic::excludes_zero(difference.range())) return true;
    const DimExpr* expr = DimExpr::inside(difference);
    if (expr == nullptr) return false;
    // A common divisor of all coefficients divides every value of the sum without its constant.
    std::int64_t divisor = 0;
    for (const auto& term : expr->terms) divisor = std::gcd(divisor, term.coefficient);
    return expr->constant % divisor != 0;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace tenon::inline ir
