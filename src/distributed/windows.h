#pragma once

#include <cstddef>
#include <vector>

namespace tenon::distributed {

/// Steps of a program, both included.
struct StepInterval {
  std::size_t begin = 0, end = 0;
};

/// A value that occupies memory during some intervals of steps and frees it between them.
struct WindowedValue {
  std::size_t bytes = 0;
  std::vector<StepInterval> intervals;
};

/// Placement of windowed values; values without overlapping intervals share memory.
struct WindowPlan {
  /// by value
  std::vector<std::size_t> offsets;
  std::size_t bytes = 0;
};
/// First-fit by decreasing size.
WindowPlan place_windows(const std::vector<WindowedValue>& values, std::size_t alignment);

/// Returns whether two values are ever resident in the same step.
bool are_together(const WindowedValue& a, const WindowedValue& b);

/// Returns the residency intervals of a value that these steps read: a gap of more than
/// `longest_gap` steps splits them, and each begins `lead` steps before its first read, to overlap
/// the gather.
std::vector<StepInterval> intervals_of(const std::vector<std::size_t>& steps, std::size_t lead,
                                       std::size_t longest_gap);

}  // namespace tenon::distributed
