#include "ir/dim_expr.h"
#include "ir/extent_too_large.h"

#include <algorithm>
#include <numeric>

// Canonical minima and maxima of dims: max(a, b) + c and max(a + c, b + c) become equal.
namespace tenon::inline ir {

using symbolic::Atom;
using symbolic::Term;

namespace {

constexpr std::size_t kMaxMembers = 64;

/// Flattens nested extrema: k*max(x, y) + rest, k > 0, inside a max becomes k*x + rest and k*y +
/// rest.
void append_flattened(Atom::Kind kind, const Dim& member, std::vector<Dim>& members) {
  const DimExpr* expr = DimExpr::inside(member);
  std::optional<std::size_t> only;
  for (std::size_t i = 0; expr != nullptr && i < expr->terms.size(); ++i) {
    if (expr->terms[i].coefficient < 0 || !linear_atom(*expr, i, kind)) continue;
    if (only) {
      only.reset();  // two nested extrema would multiply the members
      break;
    }
    only = i;
  }
  if (!only) {
    members.push_back(member);
  } else {
    const Dim scale = expr->terms[*only].coefficient, rest = expr->without(*only);
    for (const Dim& inner : linear_atom(*expr, *only, kind)->arguments) {
      members.push_back(inner * scale + rest);
    }
  }
  if (members.size() > kMaxMembers) {
    throw ExtentTooLarge("64 members of a min or max");
  }
}

/// No extent exceeds kMaxExtent, so such a number is dropped, or is the result, without a
/// comparison.
bool is_past_all(std::int64_t value, bool is_min) {
  return is_min ? value >= kMaxExtent : value <= -kMaxExtent;
}

void drop_dominated(std::vector<Dim>& members, bool is_min) {
  std::sort(members.begin(), members.end(),
            [](const Dim& a, const Dim& b) { return canonical_less(a, b); });
  members.erase(std::unique(members.begin(), members.end()), members.end());
  for (std::size_t i = 0; i < members.size();) {
    const bool is_dominated = std::any_of(members.begin(), members.end(), [&](const Dim& other) {
      if (&other == &members[i]) return false;
      return is_min ? provably_at_most(other, members[i]) : provably_at_most(members[i], other);
    });
    if (is_dominated) {
      members.erase(members.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

/// Returns the least coefficient of each monomial over all members. Subtracting it makes every
/// least coefficient zero, so that extrema that differ by a common shift become equal.
Dim common_part(const std::vector<Dim>& members) {
  std::vector<Term> all;
  DimExpr common;
  common.constant = INT64_MAX;
  bool is_huge = false;
  for (const Dim& member : members) {
    DimExpr expr = DimExpr::of(member);
    common.constant = std::min(common.constant, expr.constant);
    is_huge = is_huge || expr.constant > kMaxExtent || expr.constant < -kMaxExtent;
    all.insert(all.end(), expr.terms.begin(), expr.terms.end());
  }
  if (is_huge) common.constant = 0;
  std::sort(all.begin(), all.end(),
            [](const Term& x, const Term& y) { return compare(x.factors, y.factors) < 0; });
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    std::int64_t least = all[begin].coefficient;
    while (end < all.size() && compare(all[begin].factors, all[end].factors) == 0) {
      least = std::min(least, all[end++].coefficient);
    }
    if (end - begin < members.size()) least = std::min<std::int64_t>(least, 0);
    if (least != 0) common.terms.push_back({least, all[begin].factors});
  }
  return DimExpr::wrap(std::move(common));
}

std::int64_t common_divisor(const std::vector<Dim>& members) {
  std::int64_t divisor = 0;
  for (const Dim& member : members) {
    const DimExpr expr = DimExpr::of(member);
    divisor = std::gcd(divisor, expr.constant);
    for (const Term& term : expr.terms) divisor = std::gcd(divisor, term.coefficient);
  }
  return divisor;
}

}  // namespace

Dim symbolic::extremum_of(Atom::Kind kind, std::vector<Dim> given) {
  const bool is_min = kind == Atom::Kind::Min;
  std::vector<Dim> members;
  for (const Dim& member : given) append_flattened(kind, member, members);
  std::optional<std::int64_t> number;
  for (const Dim& member : members) {
    if (!member.is_constant()) continue;
    const std::int64_t value = member.constant();
    number = !number ? value : is_min ? std::min(*number, value) : std::max(*number, value);
  }
  std::erase_if(members, [](const Dim& member) { return member.is_constant(); });
  if (members.empty()) return *number;
  if (number && is_past_all(*number, !is_min)) return *number;
  if (number && !is_past_all(*number, is_min)) members.push_back(*number);

  drop_dominated(members, is_min);
  if (members.size() == 1) return members.front();
  const Dim common = common_part(members);
  for (Dim& member : members) member = member - common;
  const std::int64_t divisor = common_divisor(members);
  if (divisor > 1) {
    for (Dim& member : members) member = floor_div(member, divisor);
  }
  // The shifted members may flatten or reorder.
  if (common != Dim(0) || divisor > 1) {
    return extremum_of(kind, std::move(members)) * Dim(divisor) + common;
  }
  return DimExpr::of_atom(make_atom(kind, std::move(members)));
}

Dim min(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return std::min(a.constant(), b.constant());
  return symbolic::extremum_of(Atom::Kind::Min, {a, b});
}

Dim max(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return std::max(a.constant(), b.constant());
  return symbolic::extremum_of(Atom::Kind::Max, {a, b});
}

}  // namespace tenon::inline ir
