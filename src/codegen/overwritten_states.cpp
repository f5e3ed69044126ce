#include "codegen/overwritten_states.h"

#include <algorithm>

namespace tenon::codegen {
namespace {

bool has_equal_bytes(const TaskList::Buffer& a, const TaskList::Buffer& b) {
  return a.dtype == b.dtype && product(a.dims) == product(b.dims);
}

}  // namespace

bool may_overwrite(const TaskList& tasks, const Program::State& state) {
  const std::uint32_t input = tasks.inputs[state.input], output = tasks.outputs[state.output];
  const TaskList::Buffer &from = tasks.buffers[input], &to = tasks.buffers[output];
  // Otherwise the value is also another output, or a constant.
  if (to.lifetime != Lifetime::Output || from.lifetime != Lifetime::Input ||
      !has_equal_bytes(from, to))
    return false;
  const auto has = [&](const std::vector<std::uint32_t>& buffers, std::uint32_t root) {
    return std::ranges::any_of(buffers,
                               [&](std::uint32_t id) { return root_of(tasks, id) == root; });
  };
  return std::ranges::all_of(tasks.tasks, [&](const TaskList::Task& task) {
    return !has(task.writes, output) || !has(task.reads, input) ||
           std::ranges::find(task.may_share, std::pair(output, input)) != task.may_share.end();
  });
}

}  // namespace tenon::codegen
