#include "codegen/cpu/collapsed_loops.h"

#include "nests/contraction.h"
#include "nests/schedule/collapse.h"
#include "nests/stride.h"

#include <algorithm>

namespace tenon::codegen::cpu {
namespace {

using nests::Contraction;

constexpr std::int64_t kEnoughRows = 8;

// Collapsing pays if rows share one operand and the inner loop has too few of them.
bool may_gain(const Contraction& contraction, const Statement& outer, const Statement& inner,
              bool all) {
  if (!all && inner.extent.is_constant() && inner.extent.constant() >= kEnoughRows) return false;
  const auto is_read_by = [&](const Scalar& load) {
    return depends_on(load, outer.id) || depends_on(load, inner.id);
  };
  if (is_read_by(contraction.a) == is_read_by(contraction.b)) return false;
  return std::all_of(
      contraction.inner->begin() + 2, contraction.inner->end(), [&](const Statement& statement) {
        if (statement.kind != Statement::Kind::Store) return true;
        return std::any_of(statement.indices.begin(), statement.indices.end(), is_read_by);
      });
}

}  // namespace

void collapse_rows(LoopNest& nest, bool all) {
  const std::optional<Contraction> contraction = find_contraction(nest);
  if (!contraction) return;
  for (std::size_t k = contraction->parallel.size(); k-- > 1;) {
    const Statement &outer = *contraction->parallel[k - 1], &inner = *contraction->parallel[k];
    if (!may_gain(*contraction, outer, inner, all) || !nests::collapse(nest, outer.id, inner.id))
      continue;
    if (all) collapse_rows(nest, all);
    return;
  }
}

}  // namespace tenon::codegen::cpu
