#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tenon::inline base {

/// A task with dependencies.
struct ReadyTask {
  /// Indices of tasks that must run first; duplicates are allowed.
  std::vector<std::uint32_t> needs;
  std::int64_t id = 0;
  std::int64_t priority = 0;
  /// If false, the task completes as soon as its last dependency does.
  bool takes_step = true;
};

struct ReadyOrder {
  /// Tasks that take a step, in execution order.
  std::vector<std::uint32_t> sequence;
  /// By task: the step after which it became ready, counted from 1; 0 without dependencies.
  std::vector<std::int64_t> ready_at;
};

/// MegEngine's execution order (list scheduling): among ready tasks, the lowest priority value runs
/// first, then the most recently readied (so that chains stay together), then the largest id. Tasks
/// on or after a cycle are not in the sequence.
ReadyOrder ready_order(std::span<const ReadyTask> tasks);

/// Numbers tasks in depth-first post-order from `roots`: dependencies before dependents, last
/// dependency first. Only tasks that take a step get a number; others and unreachable tasks get -1.
std::vector<std::int64_t> post_order(std::span<const ReadyTask> tasks,
                                     std::span<const std::uint32_t> roots);

}  // namespace tenon::inline base
