#include "codegen/task_order.h"

#include "memory/order.h"
#include "program/arena.h"

#include <algorithm>
#include <map>
#include <optional>

namespace tenon::codegen {
namespace {

constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);
// Consecutive steps reuse cached results: smaller savings are not worth a reordering.
constexpr double kWorthIt = 0.98;
// With more tasks the search would take longer than code generation.
constexpr std::size_t kMostTasks = 2'000;

std::optional<std::uint64_t> bytes_of(const TaskList::Buffer& buffer) {
  const Dim count = product(buffer.dims);
  if (buffer.opaque || buffer.lifetime == Lifetime::Sized || !count.is_constant())
    return std::nullopt;
  const std::uint64_t bytes = static_cast<std::uint64_t>(count.constant()) *
                              static_cast<std::uint64_t>(info(buffer.dtype).storage_bytes);
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

// One item per task; no value if a task is not a sequence of calls, or if two tasks write the same
// buffer.
std::optional<memory::Problem> problem_of(const TaskList& tasks) {
  memory::Problem problem;
  std::vector<std::uint32_t> value_of(tasks.buffers.size(), kNone);
  for (const TaskList::Task& task : tasks.tasks) {
    using Kind = TaskList::Task::Kind;
    if (task.kind != Kind::Compute && task.kind != Kind::Copy) return std::nullopt;
    memory::Item item;
    item.name = task.name;
    item.number = static_cast<std::uint32_t>(problem.items.size());
    for (const std::uint32_t id : task.reads) {
      const std::uint32_t value = value_of[root_of(tasks, id)];
      if (value != kNone && std::ranges::find(item.reads, value) == item.reads.end())
        item.reads.push_back(value);
    }
    for (const std::uint32_t id : task.writes) {
      const std::uint32_t root = root_of(tasks, id);
      const TaskList::Buffer& buffer = tasks.buffers[root];
      const auto bytes = bytes_of(buffer);
      if (value_of[root] != kNone || !bytes) return std::nullopt;
      value_of[root] = static_cast<std::uint32_t>(problem.values.size());
      item.makes.push_back(value_of[root]);
      const bool is_output = buffer.lifetime != Lifetime::Value;  // Outside the arena.
      problem.values.push_back({buffer.name, is_output ? 0 : *bytes, is_output, false});
    }
    for (const auto& [result, operand] : task.may_share) {
      const std::uint32_t to = value_of[root_of(tasks, result)],
                          from = value_of[root_of(tasks, operand)];
      if (to != kNone && from != kNone && problem.values[to].bytes == problem.values[from].bytes)
        item.may_share.emplace_back(to, from);
    }
    item.alternatives.emplace_back();
    problem.items.push_back(std::move(item));
  }
  return problem;
}

// Readers of a state must precede its writer, although no data flows between them.
void keep_readers_first(const TaskList& tasks, memory::Problem& problem) {
  const auto touches = [&](const std::vector<std::uint32_t>& buffers, std::uint32_t root) {
    return std::ranges::any_of(buffers,
                               [&](std::uint32_t id) { return root_of(tasks, id) == root; });
  };
  for (const Program::State& state : tasks.states) {
    if (!state.may_overwrite) continue;
    const std::uint32_t input = root_of(tasks, tasks.inputs[state.input]),
                        output = root_of(tasks, tasks.outputs[state.output]);
    std::optional<std::size_t> maker;
    for (std::size_t k = 0; k < tasks.tasks.size() && !maker; ++k) {
      if (touches(tasks.tasks[k].writes, output)) maker = k;
    }
    for (std::size_t k = 0; maker && k < *maker; ++k) {
      if (!touches(tasks.tasks[k].reads, input)) continue;
      memory::add_order_constraint(problem, static_cast<std::uint32_t>(k),
                                   static_cast<std::uint32_t>(*maker));
    }
  }
}

std::size_t step_count(const TaskList::Task& task) {
  std::size_t count = 0;
  for (const TaskList::Alternative& alternative : task.alternatives)
    count += alternative.calls.size();
  return count;
}

// First step, by task.
std::vector<std::size_t> first_steps(const std::vector<TaskList::Task>& tasks) {
  std::vector<std::size_t> first{0};
  for (const TaskList::Task& task : tasks) first.push_back(first.back() + step_count(task));
  return first;
}

}  // namespace

void order_tasks(TaskList& tasks, std::span<Decision> decisions) {
  if (tasks.tasks.size() > kMostTasks || tasks.tasks.size() < 3) return;
  const bool has_bodies = std::ranges::any_of(
      tasks.checks, [](const TaskList::ConstraintCheck& check) { return check.end != kNoBuffer; });
  std::optional<memory::Problem> problem = has_bodies ? std::nullopt : problem_of(tasks);
  if (!problem) return;
  keep_readers_first(tasks, *problem);
  const memory::Problem better = memory::reordered(*problem);
  const auto given_bytes = static_cast<double>(memory::peak_bytes(*problem));
  if (static_cast<double>(memory::peak_bytes(better)) > kWorthIt * given_bytes) return;

  const std::vector<std::size_t> before = first_steps(tasks.tasks);
  std::vector<TaskList::Task> ordered;
  std::map<std::size_t, std::size_t> moved;  // Old to new first steps.
  std::size_t step = 0;
  for (const memory::Item& item : better.items) {
    moved[before[item.number]] = step;
    ordered.push_back(std::move(tasks.tasks[item.number]));
    step += step_count(ordered.back());
  }
  tasks.tasks = std::move(ordered);
  for (Decision& decision : decisions) {
    if (const auto found = moved.find(decision.first_step); found != moved.end())
      decision.first_step = found->second;
  }
}

}  // namespace tenon::codegen
