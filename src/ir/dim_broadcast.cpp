#include "ir/dim_broadcast.h"

#include "ir/dim_expr.h"

#include <algorithm>

// Extent of axes that broadcast against each other. The constraint that they do broadcast is
// recorded and checked elsewhere (ir/constraint.h); here it simplifies canonical forms.
namespace tenon::inline ir {

using symbolic::Atom;

namespace {

bool may_be_one(const Dim& dim) {
  const Range range = dim.range();
  return range.lo <= 1 && range.hi >= 1 && !provably_different(dim, 1);
}

const Atom* broadcast_atom(const Dim& dim) {
  const DimExpr* expr = DimExpr::inside(dim);
  if (expr == nullptr || expr->terms.size() != 1 || expr->constant != 0 ||
      expr->terms[0].coefficient != 1)
    return nullptr;
  return symbolic::linear_atom(*expr, 0, Atom::Kind::Broadcast);
}

}  // namespace

namespace symbolic {

Range range_of_broadcast(const std::vector<Dim>& members) {
  Range all = members.front().range();
  std::int64_t greatest_lo = all.lo;
  for (const Dim& member : members) {
    const Range range = member.range();
    greatest_lo = std::max(greatest_lo, range.lo);
    all = {std::min(all.lo, range.lo), std::max(all.hi, range.hi)};
  }
  // The result is one of the members: the greatest unless one is 0.
  return all.lo > 0 ? Range{greatest_lo, all.hi} : all;
}

Dim broadcast_of(std::vector<Dim> given) {
  std::vector<Dim> members;
  for (const Dim& dim : given) {
    if (const Atom* inner = broadcast_atom(dim)) {
      members.insert(members.end(), inner->arguments.begin(), inner->arguments.end());
    } else if (!(dim == Dim(1))) {
      members.push_back(dim);
    }
  }
  if (members.empty()) return 1;
  // Numbers come first in this order.
  std::sort(members.begin(), members.end(),
            [](const Dim& a, const Dim& b) { return canonical_less(a, b); });
  members.erase(std::unique(members.begin(), members.end()), members.end());
  if (members.size() == 1) return members.front();
  const auto certain = std::find_if_not(members.begin(), members.end(), may_be_one);
  if (certain != members.end()) return *certain;
  return DimExpr::of_atom(make_atom(Atom::Kind::Broadcast, std::move(members)));
}

}  // namespace symbolic

Dim broadcast(const Dim& a, const Dim& b) {
  if (a == b || b == Dim(1)) return a;
  if (a == Dim(1)) return b;
  return symbolic::broadcast_of({a, b});
}

bool may_repeat(const Dim& own, const Dim& whole) {
  // If `own` is already the common extent, it fills `whole` without repetition.
  return !(own == whole) && may_be_one(own) && !(broadcast(own, whole) == own);
}

}  // namespace tenon::inline ir
