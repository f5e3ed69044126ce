#pragma once

#include "memory/problem.h"

#include <string>

namespace tenon::memory {

/// The arena as a picture: time to the right, addresses upwards, a rectangle for each storage,
/// lines for the peak and the budget (0: none). One page that needs nothing else; names are
/// escaped.
std::string memory_map(const Plan& plan, const Problem& problem, std::uint64_t budget_bytes);

/// One budget and what it costs.
struct FrontierPoint {
  std::uint64_t budget_bytes = 0, arena_bytes = 0;
  /// extra time as a part of the time without a budget
  double overhead = 0;
  bool is_possible = false;
};
/// Budget against overhead, as a page.
std::string frontier_page(const std::string& title, const std::vector<FrontierPoint>& points);

}  // namespace tenon::memory
