#include "program/program.h"

#include <algorithm>

namespace tenon::inline program {

bool Program::is_kernel_only() const {
  return std::ranges::all_of(steps,
                             [](const Step& step) { return step.kind == StepKind::Kernel; }) &&
         std::ranges::all_of(
             outputs, [&](std::uint32_t id) { return buffers[id].place == BufferKind::Output; });
}

std::int64_t Program::last_place(const TensorMap& map, std::size_t axis) {
  const auto number = [&](const std::vector<std::uint64_t>& list, std::size_t at) {
    return static_cast<std::int64_t>(list[at]);
  };
  return (number(map.places, axis) - 1) * number(map.steps, axis + 1) - number(map.before, axis) -
         (number(map.extents, axis + 1) - 1);
}

std::vector<std::uint32_t> buffers_of(const Program& program, const Program::Step& step) {
  if (step.kind == Program::StepKind::Kernel) return step.buffers;
  std::vector<std::uint32_t> used;
  const auto add = [&](std::initializer_list<std::uint32_t> list) {
    for (const std::uint32_t id : list) {
      if (id != kNoBuffer && std::ranges::find(used, id) == used.end()) used.push_back(id);
    }
  };
  switch (step.kind) {
    case Program::StepKind::Kernel:
      break;
    case Program::StepKind::Host: {
      const HostOperator& made = program.operators[step.detail];
      for (const std::uint32_t id : made.operands) add({id});
      for (const std::uint32_t id : made.results) add({id});
      break;
    }
    case Program::StepKind::Branch: {
      const BranchStep& made = program.branches[step.detail];
      add({made.condition});
      for (const BranchStep::Result& each : made.results)
        add({each.result, each.first, each.second});
      break;
    }
    case Program::StepKind::Loop: {
      const LoopStep& made = program.loops[step.detail];
      add({made.trip_count, made.condition, made.counter, made.goes_on, made.next_condition});
      for (const auto& each : made.carried)
        add({each.initial, each.in, each.out, each.result, each.spare});
      for (const auto& each : made.scanned) add({each.source, each.in});
      for (const auto& each : made.stacked) add({each.out, each.result});
      break;
    }
  }
  return used;
}

std::uint32_t root_of(const Program& program, std::uint32_t buffer) {
  while (program.buffers[buffer].place == Program::BufferKind::View) {
    buffer = static_cast<std::uint32_t>(program.buffers[buffer].offset);
  }
  return buffer;
}

std::uint32_t end_of(const Program& program, std::uint32_t step) {
  const Program::Step& made = program.steps[step];
  if (made.kind == Program::StepKind::Branch) return program.branches[made.detail].else_end;
  if (made.kind == Program::StepKind::Loop) return program.loops[made.detail].end;
  return step + 1;
}

}  // namespace tenon::inline program
