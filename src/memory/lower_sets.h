#pragma once

#include "memory/search.h"

#include <string_view>
#include <vector>

namespace tenon::memory {

/// Rematerialization planners: our own, and published ones for comparison.
enum class Method : std::uint8_t {
  /// Per-value decisions (`search`).
  Search,
  /// Lower sets that end at one value, by dynamic programming (Kusumoto et al. 2019).
  Approximate,
  /// All lower sets, by the same dynamic program.
  Exact,
  /// Segments between articulation values (Chen et al. 2016).
  Chen,
};
std::string_view name_of(Method method);
/// Returns the spellings of the methods: search, approximate, exact, chen.
const std::vector<std::string>& method_names();
std::optional<Method> parse_method(std::string_view text);

/// Plans by the paper's canonical strategy: repeatable items are cut into blocks whose boundaries
/// are kept; each block but the last is recomputed as a whole when its backward half begins. The
/// dynamic program uses the paper's formula; its plans are then evaluated with exact lifetimes and
/// placed, so that a budget means the same as for `search`. Returns the fastest plan within the
/// budget, otherwise the smallest. Throws Error (Unsupported) if repeatable items read values of
/// other items, or if there are too many lower sets.
SearchResult plan_by_lower_sets(const Problem& problem, const SearchOptions& options,
                                Method method);

}  // namespace tenon::memory
