#include "codegen/shape_checks.h"

#include "codegen/extent_of.h"

#include <algorithm>

namespace tenon::codegen {
namespace {

// Both enums say the same in layers that do not see each other.
ShapeCheck::Kind kind_of(Constraint::Kind kind) {
  switch (kind) {
    case Constraint::Kind::Equal:
      return ShapeCheck::Kind::Equal;
    case Constraint::Kind::AtMost:
      return ShapeCheck::Kind::AtMost;
    case Constraint::Kind::OneOr:
      return ShapeCheck::Kind::OneOr;
    case Constraint::Kind::Broadcast:
      break;
  }
  return ShapeCheck::Kind::Broadcast;
}

}  // namespace

std::vector<ShapeCheck> shape_checks(const Graph& graph,
                                     const std::map<std::string, std::size_t>& symbols) {
  std::vector<ShapeCheck> checks;
  for (const Constraint& constraint : constraints_of(graph)) {
    SymbolRanges asked;
    constraint.a.collect_symbols(asked);
    constraint.b.collect_symbols(asked);
    if (!std::ranges::all_of(asked,
                             [&](const auto& symbol) { return symbols.contains(symbol.first); }))
      continue;
    checks.push_back({kind_of(constraint.kind), extent_of(constraint.a, symbols),
                      extent_of(constraint.b, symbols), constraint.op, constraint.where,
                      rule_text(constraint.kind, constraint.a, constraint.b)});
  }
  return checks;
}

}  // namespace tenon::codegen
