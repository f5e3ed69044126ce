#include "distributed/windows.h"

#include <algorithm>
#include <numeric>

namespace tenon::distributed {

bool are_together(const WindowedValue& a, const WindowedValue& b) {
  return std::ranges::any_of(a.intervals, [&](const StepInterval& one) {
    return std::ranges::any_of(b.intervals, [&](const StepInterval& other) {
      return one.begin <= other.end && other.begin <= one.end;
    });
  });
}

WindowPlan place_windows(const std::vector<WindowedValue>& values, std::size_t alignment) {
  WindowPlan plan;
  plan.offsets.assign(values.size(), 0);
  std::vector<std::size_t> order(values.size()), placed;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t k) { return values[k].bytes; });
  for (std::size_t k : order) {
    std::vector<std::size_t> beside;
    for (std::size_t other : placed) {
      if (are_together(values[k], values[other])) beside.push_back(other);
    }
    std::ranges::sort(beside, {}, [&](std::size_t other) { return plan.offsets[other]; });
    std::size_t at = 0;
    for (std::size_t other : beside) {
      if (at + values[k].bytes <= plan.offsets[other]) break;
      const std::size_t end = plan.offsets[other] + values[other].bytes;
      at = std::max(at, (end + alignment - 1) / alignment * alignment);
    }
    plan.offsets[k] = at;
    plan.bytes = std::max(plan.bytes, at + values[k].bytes);
    placed.push_back(k);
  }
  return plan;
}

std::vector<StepInterval> intervals_of(const std::vector<std::size_t>& steps, std::size_t lead,
                                       std::size_t longest_gap) {
  std::vector<StepInterval> intervals;
  for (std::size_t step : steps) {
    if (!intervals.empty() && step <= intervals.back().end + longest_gap) {
      intervals.back().end = step;
    } else {
      intervals.push_back({step - std::min(step, lead), step});
    }
  }
  return intervals;
}

}  // namespace tenon::distributed
