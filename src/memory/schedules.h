#pragma once

#include "memory/problem.h"

#include <cstdint>
#include <vector>

namespace tenon::memory {

/// The items to schedule, by index, with the values that they define and use.
struct Tasks {
  explicit Tasks(const Problem& problem);
  std::size_t size() const { return makes.size(); }

  struct ScheduledValue {
    std::int64_t bytes = 0;
    std::uint32_t maker = 0;
    /// Without duplicates.
    std::vector<std::uint32_t> readers;
    bool is_output = false;
  };
  std::vector<ScheduledValue> values;
  /// Values, by task.
  std::vector<std::vector<std::uint32_t>> makes, reads;
  /// Tasks, by task, without duplicates.
  std::vector<std::vector<std::uint32_t>> needs;
  /// By task: extra bytes while it runs.
  std::vector<std::int64_t> inner_bytes;
};

using Sequence = std::vector<std::uint32_t>;

std::int64_t peak_bytes(const Tasks& tasks, const Sequence& sequence);

/// List scheduling: picks the ready task that leaves the fewest live bytes; of equals the one that
/// became ready last, so that chains run to their end.
Sequence least_growth(const Tasks& tasks);
/// The same in reversed time: of the tasks whose readers are all scheduled, picks the one with the
/// fewest additional operand bytes.
Sequence least_growth_backwards(const Tasks& tasks);
/// Depth-first from the outputs. Of a task's operands, the one with the largest excess of peak over
/// remaining bytes comes first.
Sequence deepest_need_first(const Tasks& tasks);

}  // namespace tenon::memory
