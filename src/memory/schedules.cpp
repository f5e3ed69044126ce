// List scheduling for low peak memory.
#include "memory/schedules.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace tenon::memory {
namespace {

void keep_once(std::vector<std::uint32_t>& items) {
  std::ranges::sort(items);
  const auto rest = std::ranges::unique(items);
  items.erase(rest.begin(), rest.end());
}

/// A priority queue of ready tasks with changing costs: a changed task is pushed again, and stale
/// entries are skipped (lazy deletion).
class ReadyQueue {
 public:
  explicit ReadyQueue(std::size_t task_count)
      : costs_(task_count, 0), is_waiting_(task_count, false) {}

  void put(std::uint32_t task, std::int64_t cost) {
    costs_[task] = cost;
    is_waiting_[task] = true;
    entries_.emplace(cost, -next_++, task);
  }
  bool holds(std::uint32_t task) const { return is_waiting_[task]; }

  /// Returns false if the queue is empty.
  bool take(std::uint32_t& task) {
    while (!entries_.empty()) {
      const auto [cost, turn, next] = entries_.top();
      entries_.pop();
      if (!is_waiting_[next] || costs_[next] != cost) continue;
      is_waiting_[next] = false;
      task = next;
      return true;
    }
    return false;
  }

 private:
  using Entry = std::tuple<std::int64_t, std::int64_t, std::uint32_t>;  // Least first.
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> entries_;
  std::vector<std::int64_t> costs_;
  std::vector<bool> is_waiting_;
  std::int64_t next_ = 0;
};

}  // namespace

Tasks::Tasks(const Problem& problem) {
  for (const PlannedValue& value : problem.values)
    values.push_back({static_cast<std::int64_t>(value.bytes), 0, {}, value.is_output});
  for (std::uint32_t task = 0; task < problem.items.size(); ++task) {
    const Item& item = problem.items[task];
    makes.push_back(item.makes);
    for (std::uint32_t value : item.makes) values[value].maker = task;
    reads.push_back(item.reads);
    keep_once(reads.back());
    needs.emplace_back();
    for (std::uint32_t value : reads.back()) {
      needs.back().push_back(values[value].maker);
      values[value].readers.push_back(task);
    }
    keep_once(needs.back());
    inner_bytes.push_back(static_cast<std::int64_t>(item.alternatives[0].workspace_bytes));
  }
}

std::int64_t peak_bytes(const Tasks& tasks, const Sequence& sequence) {
  std::vector<std::size_t> waiting(tasks.values.size());
  for (std::size_t value = 0; value < waiting.size(); ++value) {
    waiting[value] = tasks.values[value].readers.size() + (tasks.values[value].is_output ? 1 : 0);
  }
  std::int64_t held = 0, peak = 0;
  for (std::uint32_t task : sequence) {
    for (std::uint32_t value : tasks.makes[task]) held += tasks.values[value].bytes;
    peak = std::max(peak, held + tasks.inner_bytes[task]);
    for (std::uint32_t value : tasks.makes[task]) {
      if (waiting[value] == 0) held -= tasks.values[value].bytes;
    }
    for (std::uint32_t value : tasks.reads[task]) {
      if (--waiting[value] == 0) held -= tasks.values[value].bytes;
    }
  }
  return peak;
}

Sequence least_growth(const Tasks& tasks) {
  const std::size_t count = tasks.size();
  std::vector<std::size_t> missing(count), waiting(tasks.values.size());
  for (std::size_t value = 0; value < waiting.size(); ++value) {
    waiting[value] = tasks.values[value].readers.size() + (tasks.values[value].is_output ? 1 : 0);
  }
  const auto growth = [&](std::uint32_t task) {
    std::int64_t bytes = 0;
    for (std::uint32_t value : tasks.makes[task]) {
      if (waiting[value] != 0) bytes += tasks.values[value].bytes;
    }
    for (std::uint32_t value : tasks.reads[task]) {
      if (waiting[value] == 1) bytes -= tasks.values[value].bytes;
    }
    return bytes;
  };
  ReadyQueue ready(count);
  for (std::size_t task = count; task-- > 0;) {
    missing[task] = tasks.needs[task].size();
    if (missing[task] == 0)
      ready.put(static_cast<std::uint32_t>(task), growth(static_cast<std::uint32_t>(task)));
  }
  std::vector<std::vector<std::uint32_t>> followers(count);
  for (std::uint32_t task = 0; task < count; ++task) {
    for (std::uint32_t need : tasks.needs[task]) followers[need].push_back(task);
  }
  std::vector<bool> is_done(count, false);
  Sequence sequence;
  for (std::uint32_t task = 0; ready.take(task);) {
    sequence.push_back(task);
    is_done[task] = true;
    for (std::uint32_t value : tasks.reads[task]) {
      if (--waiting[value] != 1) continue;
      // The last remaining reader now frees the value.
      for (std::uint32_t reader : tasks.values[value].readers) {
        if (!is_done[reader] && ready.holds(reader)) ready.put(reader, growth(reader));
      }
    }
    for (std::uint32_t follower : followers[task]) {
      if (--missing[follower] == 0) ready.put(follower, growth(follower));
    }
  }
  return sequence;
}

Sequence least_growth_backwards(const Tasks& tasks) {
  const std::size_t count = tasks.size();
  std::vector<std::size_t> missing(count, 0);
  std::vector<bool> is_held(tasks.values.size(), false);
  for (std::uint32_t task = 0; task < count; ++task) {
    for (std::uint32_t need : tasks.needs[task]) ++missing[need];
  }
  for (std::size_t value = 0; value < is_held.size(); ++value)
    is_held[value] = tasks.values[value].is_output;
  const auto growth = [&](std::uint32_t task) {
    std::int64_t bytes = 0;
    for (std::uint32_t value : tasks.reads[task]) {
      if (!is_held[value]) bytes += tasks.values[value].bytes;
    }
    for (std::uint32_t value : tasks.makes[task]) {
      if (is_held[value]) bytes -= tasks.values[value].bytes;
    }
    return bytes;
  };
  ReadyQueue ready(count);
  for (std::uint32_t task = 0; task < count; ++task) {
    if (missing[task] == 0) ready.put(task, growth(task));
  }
  Sequence sequence;
  for (std::uint32_t task = 0; ready.take(task);) {
    sequence.push_back(task);
    for (std::uint32_t value : tasks.reads[task]) {
      if (is_held[value]) continue;
      is_held[value] = true;
      // Other readers no longer pay for this value.
      for (std::uint32_t reader : tasks.values[value].readers) {
        if (ready.holds(reader)) ready.put(reader, growth(reader));
      }
    }
    for (std::uint32_t need : tasks.needs[task]) {
      if (--missing[need] == 0) ready.put(need, growth(need));
    }
  }
  std::ranges::reverse(sequence);
  return sequence;
}

Sequence deepest_need_first(const Tasks& tasks) {
  const std::size_t count = tasks.size();
  // Treats the graph as a tree (Sethi-Ullman): peak and remaining bytes of each task's subtree.
  std::vector<std::int64_t> takes(count, 0), leaves(count, 0);
  std::vector<std::vector<std::uint32_t>> visits(count);
  for (std::uint32_t task = 0; task < count; ++task) {
    for (std::uint32_t value : tasks.makes[task]) leaves[task] += tasks.values[value].bytes;
    visits[task] = tasks.needs[task];
    std::ranges::stable_sort(visits[task], std::greater{},
                             [&](std::uint32_t need) { return takes[need] - leaves[need]; });
    std::int64_t held = 0;
    for (std::uint32_t need : visits[task]) {
      takes[task] = std::max(takes[task], held + takes[need]);
      held += leaves[need];
    }
    takes[task] = std::max(takes[task], held + leaves[task] + tasks.inner_bytes[task]);
  }
  std::vector<bool> is_done(count, false);
  Sequence sequence;
  struct Entry {
    std::uint32_t task;
    std::size_t next = 0;
  };
  std::vector<Entry> stack;
  for (std::uint32_t root = 0; root < count; ++root) {
    // Roots are the tasks without readers, in given order.
    const bool is_read = std::ranges::any_of(tasks.makes[root], [&](std::uint32_t value) {
      return !tasks.values[value].readers.empty();
    });
    if (is_read) continue;
    stack.push_back({root});
    while (!stack.empty()) {
      Entry& top = stack.back();
      const std::vector<std::uint32_t>& order = visits[top.task];
      if (top.next < order.size()) {
        const std::uint32_t need = order[top.next++];
        if (!is_done[need]) stack.push_back({need});
        continue;
      }
      if (!is_done[top.task]) sequence.push_back(top.task);
      is_done[top.task] = true;
      stack.pop_back();
    }
  }
  return sequence;
}

}  // namespace tenon::memory
