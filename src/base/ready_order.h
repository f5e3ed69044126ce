#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tenon {

/// Something to be done once, after what it needs.
struct ReadyTask {
  /// positions of tasks that come first; repeats do no harm
  std::vector<std::uint32_t> needs;
  std::int64_t id = 0;
  std::int64_t priority = 0;
  /// One that does not takes no time: it is over as soon as the last of its needs is.
  bool takes_step = true;
};

struct ReadyOrder {
  /// the tasks that take a step, as they run
  std::vector<std::uint32_t> sequence;
  /// By task: the step after which it was ready, counted from 1; 0 where it needs nothing.
  std::vector<std::int64_t> ready_at;
};

/// MegEngine's order of execution: of the tasks that are ready, the one of lowest priority runs,
/// then the one that became ready last (so that chains run together), then the one of largest id.
/// Tasks on a cycle, and those behind one, are in no sequence.
ReadyOrder ready_order(std::span<const ReadyTask> tasks);

/// Numbers tasks by a walk from `roots`, in their order, that leaves a task after all that it needs
/// and looks at the last need first. Only tasks that take a step get a number; the others, and
/// those that no root reaches, have -1.
std::vector<std::int64_t> post_order(std::span<const ReadyTask> tasks,
                                     std::span<const std::uint32_t> roots);

}  // namespace tenon
