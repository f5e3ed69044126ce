#pragma once

#include "memory/search.h"

#include <string_view>
#include <vector>

namespace tenon::memory {

/// Ways to plan recomputation, ours and those that others published, for comparison.
enum class Method : std::uint8_t {
  /// for every value by itself (`search`)
  Search,
  /// lower sets that end at one value, by dynamic programming (Kusumoto et al. 2019)
  Approximate,
  /// all lower sets, likewise
  Exact,
  /// segments between values that everything passes through (Chen et al. 2016)
  Chen,
};
std::string_view name_of(Method method);
/// The words that mean one: search, approximate, exact, chen.
const std::vector<std::string>& method_names();
std::optional<Method> parse_method(std::string_view text);

/// The canonical strategy of the paper: the items that may be repeated are cut into blocks, whose
/// boundaries are kept; a block is computed again as a whole when its backward half begins, the
/// last one never. Sums of the dynamic programme follow its formula; what comes out is judged by
/// exact lifetimes and placed, so that a budget means the same as for `search`. The fastest within
/// the budget, or else the smallest. Throws Error (Unsupported) where items that may be repeated
/// read what others make, or there are too many lower sets.
SearchResult plan_by_lower_sets(const Problem& problem, const SearchOptions& options,
                                Method method);

}  // namespace tenon::memory
