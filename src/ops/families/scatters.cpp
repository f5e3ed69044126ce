#include "ops/families/scatters.h"

#include <unordered_set>

namespace tenon::inline ops {

namespace {

// Returns whether an element depends only on elements at the same position.
bool is_in_place(ExprKind kind) {
  return kind == ExprKind::Reshape || kind == ExprKind::Unary || kind == ExprKind::Binary ||
         kind == ExprKind::Select || kind == ExprKind::Cast;
}

}  // namespace

std::vector<Expr> scatters_in(const Expr& expr) {
  std::vector<Expr> found, work{expr};
  std::unordered_set<const ExprNode*> seen;
  while (!work.empty()) {
    const Expr next = work.back();
    work.pop_back();
    if (!seen.insert(&next.node()).second) continue;
    if (next.node().kind == ExprKind::Scatter) found.push_back(next);
    if (!is_in_place(next.node().kind)) continue;
    for (const Expr& arg : next.node().args) {
      if (arg.is_defined()) work.push_back(arg);
    }
  }
  return found;
}

}  // namespace tenon::inline ops
