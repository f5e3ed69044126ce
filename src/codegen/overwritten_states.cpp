#include "codegen/overwritten_states.h"

#include <algorithm>
#include <map>

namespace tenon::codegen {
namespace {

bool has_equal_bytes(const TaskList::Buffer& a, const TaskList::Buffer& b) {
  return a.dtype == b.dtype && product(a.dims) == product(b.dims);
}

}  // namespace

std::vector<StatePorts> overwritten_states(const TaskList& tasks,
                                           std::span<const StatePorts> states) {
  const auto is_of = [&](const std::vector<std::uint32_t>& buffers, std::uint32_t root) {
    return std::ranges::any_of(buffers,
                               [&](std::uint32_t id) { return root_of(tasks, id) == root; });
  };
  std::map<std::uint32_t, std::vector<const TaskList::Task*>> writers;  // By buffer.
  for (const TaskList::Task& task : tasks.tasks) {
    for (const std::uint32_t id : task.writes) writers[root_of(tasks, id)].push_back(&task);
  }
  std::vector<StatePorts> found;
  for (const StatePorts& state : states) {
    const std::uint32_t input = tasks.inputs[state.input], output = tasks.outputs[state.output];
    const TaskList::Buffer &from = tasks.buffers[input], &to = tasks.buffers[output];
    // Otherwise the value is also another output, or a constant.
    if (to.lifetime != Lifetime::Output || from.lifetime != Lifetime::Input ||
        !has_equal_bytes(from, to))
      continue;
    const bool may = std::ranges::all_of(writers[output], [&](const TaskList::Task* task) {
      return !is_of(task->reads, input) ||
             std::ranges::find(task->may_share, std::pair(output, input)) != task->may_share.end();
    });
    if (may) found.push_back(state);
  }
  return found;
}

std::vector<StatePorts> common_states(std::vector<StatePorts> states,
                                      std::span<const StatePorts> others) {
  std::erase_if(states, [&](const StatePorts& state) {
    return std::ranges::none_of(others, [&](const StatePorts& other) {
      return other.input == state.input && other.output == state.output;
    });
  });
  return states;
}

}  // namespace tenon::codegen
