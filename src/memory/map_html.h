#pragma once

#include "memory/problem.h"

#include <string>

namespace tenon::memory {

/// Renders the arena as a self-contained HTML page: time on the x axis, addresses on the y axis, a
/// rectangle per storage, lines for the peak and the budget (0: omitted). Names are escaped.
std::string memory_map(const Plan& plan, const Problem& problem, std::uint64_t budget_bytes);

/// One point of the memory-time trade-off.
struct FrontierPoint {
  std::uint64_t budget_bytes = 0, arena_bytes = 0;
  /// Extra time as a share of the time without a budget.
  double overhead = 0;
  bool is_possible = false;
};
/// Renders budget against overhead as a page.
std::string frontier_page(const std::string& title, const std::vector<FrontierPoint>& points);

}  // namespace tenon::memory
