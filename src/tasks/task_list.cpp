#include "tasks/task_list.h"

#include "base/error.h"
#include "nests/in_place.h"

#include <algorithm>
#include <map>
#include <set>

namespace tenon::inline tasks {
namespace {

using nests::StorageClass;

// Maps a buffer of the nest to its position in the call's buffers; no value for scratch.
std::optional<std::size_t> argument_of(const nests::LoopNest& nest, std::size_t buffer) {
  if (nest.buffers[buffer].storage == StorageClass::Scratch) return std::nullopt;
  std::size_t given = 0;
  for (std::size_t k = 0; k < buffer; ++k)
    given += nest.buffers[k].storage != StorageClass::Scratch;
  return given;
}

bool has_equal_bytes(const TaskList::Buffer& a, const TaskList::Buffer& b) {
  return info(a.dtype).storage_bytes == info(b.dtype).storage_bytes &&
         product(a.dims) == product(b.dims);
}

// Returns whether the calls of an alternative let the result overwrite the operand: every call that
// reads the operand precedes every call that writes the result, except one call that overwrites it
// in place.
bool may_share_in(const TaskList& tasks, const TaskList::Alternative& alternative,
                  std::uint32_t result, std::uint32_t operand) {
  bool is_written = false;
  for (const TaskList::Call& call : alternative.calls) {
    const nests::LoopNest& nest = tasks.kernels[call.kernel].nest;
    std::optional<std::size_t> of_result, of_operand;
    bool is_twice = false;
    for (std::size_t k = 0; k < nest.buffers.size(); ++k) {
      const std::optional<std::size_t> argument = argument_of(nest, k);
      if (!argument) continue;
      const std::uint32_t id = call.buffers[*argument];
      if (id == result) is_twice |= std::exchange(of_result, k).has_value();
      if (id == operand) is_twice |= std::exchange(of_operand, k).has_value();
    }
    if (of_operand && is_written) return false;
    if (of_result && of_operand &&
        (is_twice || !nests::may_overwrite(nest, *of_result, *of_operand)))
      return false;
    is_written |= of_result.has_value();
  }
  return is_written;
}

}  // namespace

std::string_view name_of(TaskList::Task::Kind kind) {
  static constexpr std::string_view kNames[] = {"compute", "host", "copy", "branch", "loop"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name_of(Lifetime lifetime) {
  static constexpr std::string_view kNames[] = {"input", "output", "constant", "value", "sized"};
  return kNames[static_cast<std::size_t>(lifetime)];
}

namespace {

void derive_control_uses(TaskList::Task& task) {
  const auto add = [](std::vector<std::uint32_t>& list, std::initializer_list<std::uint32_t> ids) {
    for (const std::uint32_t id : ids) {
      if (id != kNoBuffer && std::ranges::find(list, id) == list.end()) list.push_back(id);
    }
  };
  task.reads.clear();
  task.writes.clear();
  if (task.host) {
    for (const std::uint32_t id : task.host->operands) add(task.reads, {id});
    for (const std::uint32_t id : task.host->results) add(task.writes, {id});
  }
  if (task.branch) {
    add(task.reads, {task.branch->condition});
    for (const BranchStep::Result& each : task.branch->results) add(task.writes, {each.result});
  }
  if (task.loop) {
    const LoopStep& loop = *task.loop;
    add(task.reads, {loop.trip_count, loop.condition});
    add(task.writes, {loop.counter, loop.goes_on});
    for (const LoopStep::Carried& each : loop.carried) {
      add(task.reads, {each.initial});
      add(task.writes, {each.in, each.result, each.spare});
      if (each.is_direct) add(task.writes, {each.out});
    }
    for (const LoopStep::Scanned& each : loop.scanned) {
      add(task.reads, {each.source});
      add(task.writes, {each.in});
    }
    for (const LoopStep::Stacked& each : loop.stacked) {
      add(task.writes, {each.result});
      if (each.is_direct) add(task.writes, {each.out});
    }
  }
}

}  // namespace

std::uint32_t root_of(const TaskList& tasks, std::uint32_t buffer) {
  while (tasks.buffers[buffer].view_of) buffer = *tasks.buffers[buffer].view_of;
  return buffer;
}

std::uint32_t end_of(const TaskList& tasks, std::uint32_t task) {
  if (tasks.tasks[task].branch) return tasks.tasks[task].branch->else_end;
  if (tasks.tasks[task].loop) return tasks.tasks[task].loop->end;
  return task + 1;
}

void derive_uses(const TaskList& tasks, TaskList::Task& task) {
  if (task.host || task.branch || task.loop) return derive_control_uses(task);
  std::set<std::uint32_t> reads, writes, own;
  for (const TaskList::Alternative& alternative : task.alternatives) {
    std::set<std::uint32_t> made;  // Written by earlier calls.
    for (const TaskList::Call& call : alternative.calls) {
      const nests::LoopNest& nest = tasks.kernels[call.kernel].nest;
      for (std::size_t k = 0; k < nest.buffers.size(); ++k) {
        const std::optional<std::size_t> argument = argument_of(nest, k);
        if (!argument) continue;
        const std::uint32_t id = call.buffers[*argument];
        if (nest.buffers[k].storage == StorageClass::Result) {
          writes.insert(id);
          made.insert(id);
        } else if (made.contains(id)) {
          own.insert(id);
        } else {
          reads.insert(id);
        }
      }
    }
  }
  task.reads.assign(reads.begin(), reads.end());
  task.writes.assign(writes.begin(), writes.end());
  task.may_share.clear();
  for (const std::uint32_t result : writes) {
    for (const std::uint32_t operand : reads) {
      // A caller-provided input may only alias a caller-provided output.
      const Lifetime lifetime = tasks.buffers[operand].lifetime;
      const bool is_given =
          lifetime == Lifetime::Input && tasks.buffers[result].lifetime == Lifetime::Output;
      const bool can =
          (lifetime == Lifetime::Value || is_given) && !writes.contains(operand) &&
          has_equal_bytes(tasks.buffers[result], tasks.buffers[operand]) &&
          std::ranges::all_of(task.alternatives, [&](const TaskList::Alternative& alternative) {
            return may_share_in(tasks, alternative, result, operand);
          });
      if (can) task.may_share.emplace_back(result, operand);
    }
  }
  // Pairs are tried greedily in this order: operands with few possible results come first.
  std::map<std::uint32_t, std::size_t> takers;
  for (const auto& [result, operand] : task.may_share) ++takers[operand];
  std::ranges::stable_sort(task.may_share, {},
                           [&](const auto& pair) { return takers[pair.second]; });
}

}  // namespace tenon::inline tasks
