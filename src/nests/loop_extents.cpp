#include "nests/loop_extents.h"

#include <algorithm>
#include <optional>

namespace tenon::nests {
namespace {

void note(const Block& block, std::map<std::size_t, std::optional<Dim>>& extents) {
  for (const Statement& statement : block) {
    if (statement.kind != Statement::Kind::Loop) continue;
    std::optional<Dim>& known = extents.try_emplace(statement.id, statement.extent).first->second;
    if (known && *known != statement.extent) {
      const bool are_numbers = known->is_constant() && statement.extent.is_constant();
      known = are_numbers
                  ? std::optional(Dim(std::max(known->constant(), statement.extent.constant())))
                  : std::nullopt;
    }
    note(statement.body, extents);
  }
}

}  // namespace

std::map<std::size_t, Dim> loop_extents(const Block& block) {
  std::map<std::size_t, std::optional<Dim>> all;
  note(block, all);
  std::map<std::size_t, Dim> known;
  for (const auto& [loop, extent] : all) {
    if (extent) known.emplace(loop, *extent);
  }
  return known;
}

}  // namespace tenon::nests
