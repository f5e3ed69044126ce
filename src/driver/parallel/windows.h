#pragma once

#include <cstddef>
#include <vector>

namespace tenon {

/// Steps of a program, both included.
struct StepInterval {
  std::size_t begin = 0, end = 0;
};

/// A value that has its place in memory while some steps run, and leaves it to others between them.
struct WindowedValue {
  std::size_t bytes = 0;
  std::vector<StepInterval> intervals;
};

/// Where values lie whose intervals do not overlap share memory.
struct WindowPlan {
  /// by value
  std::vector<std::size_t> offsets;
  std::size_t bytes = 0;
};
/// Large ones first, each at the first place that is free whenever it is there.
WindowPlan place_windows(const std::vector<WindowedValue>& values, std::size_t alignment);

/// Whether two values are ever there in the same step.
bool are_together(const WindowedValue& a, const WindowedValue& b);

/// The steps that read a value, as intervals: a gap of more than `longest_gap` steps ends one, and
/// each begins `lead` steps before its first read, so that the value can come in the meantime.
std::vector<StepInterval> intervals_of(const std::vector<std::size_t>& steps, std::size_t lead,
                                       std::size_t longest_gap);

}  // namespace tenon
