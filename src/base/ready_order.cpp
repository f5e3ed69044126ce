#include "base/ready_order.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace tenon::inline base {
namespace {

struct ReadyCandidate {
  std::int64_t priority, ready_at, id;
  std::uint32_t task;

  // std::priority_queue returns the greatest element first.
  bool operator<(const ReadyCandidate& other) const {
    return std::tuple(-priority, ready_at, id, task) <
           std::tuple(-other.priority, other.ready_at, other.id, other.task);
  }
};

// Distinct dependencies of each task, and its dependents.
struct Edges {
  std::vector<std::uint32_t> missing;
  std::vector<std::vector<std::uint32_t>> readers;

  explicit Edges(std::span<const ReadyTask> tasks) : missing(tasks.size()), readers(tasks.size()) {
    for (std::uint32_t task = 0; task < tasks.size(); ++task) {
      for (std::uint32_t need : tasks[task].needs) {
        // A duplicate equals the last added reader.
        if (!readers[need].empty() && readers[need].back() == task) continue;
        readers[need].push_back(task);
        ++missing[task];
      }
    }
  }
};

}  // namespace

ReadyOrder ready_order(std::span<const ReadyTask> tasks) {
  Edges edges(tasks);
  ReadyOrder order;
  order.ready_at.assign(tasks.size(), 0);
  std::priority_queue<ReadyCandidate> ready;
  std::vector<std::uint32_t> timeless;  // ready tasks that take no step

  const auto make_ready = [&](std::uint32_t task, std::int64_t step) {
    order.ready_at[task] = step;
    if (tasks[task].takes_step) {
      ready.push({tasks[task].priority, step, tasks[task].id, task});
    } else {
      timeless.push_back(task);
    }
  };
  const auto finish = [&](std::uint32_t task, std::int64_t step) {
    for (std::uint32_t reader : edges.readers[task]) {
      if (--edges.missing[reader] == 0) make_ready(reader, step);
    }
  };

  for (std::uint32_t task = 0; task < tasks.size(); ++task) {
    if (edges.missing[task] == 0) make_ready(task, 0);
  }
  while (!ready.empty() || !timeless.empty()) {
    if (!timeless.empty()) {
      const std::uint32_t task = timeless.back();
      timeless.pop_back();
      finish(task, order.ready_at[task]);
      continue;
    }
    const std::uint32_t task = ready.top().task;
    ready.pop();
    order.sequence.push_back(task);
    finish(task, static_cast<std::int64_t>(order.sequence.size()));
  }
  return order;
}

std::vector<std::int64_t> post_order(std::span<const ReadyTask> tasks,
                                     std::span<const std::uint32_t> roots) {
  std::vector<std::int64_t> number(tasks.size(), -1);
  std::vector<bool> seen(tasks.size());
  std::int64_t next = 0;
  struct Visit {
    std::uint32_t task;
    std::size_t left;  // dependencies not visited yet
  };
  std::vector<Visit> stack;
  const auto enter = [&](std::uint32_t task) {
    if (seen[task]) return;
    seen[task] = true;
    stack.push_back({task, tasks[task].needs.size()});
  };
  for (std::uint32_t root : roots) {
    enter(root);
    while (!stack.empty()) {
      Visit& visit = stack.back();
      if (visit.left > 0) {
        --visit.left;
        enter(tasks[visit.task].needs[visit.left]);
      } else {
        if (tasks[visit.task].takes_step) number[visit.task] = next++;
        stack.pop_back();
      }
    }
  }
  return number;
}

}  // namespace tenon::inline base
