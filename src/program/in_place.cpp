#include "program/in_place.h"

#include <algorithm>
#include <optional>

namespace tenon::inline program {

bool is_read_first(const Program& program, std::size_t input, std::size_t output) {
  const std::uint32_t from = program.inputs[input], to = program.outputs[output];
  if (program.buffers[from].place != Program::BufferKind::Input ||
      program.buffers[to].place != Program::BufferKind::Output ||
      std::ranges::count(program.outputs, to) > 1)
    return false;
  std::optional<std::size_t> first_write, last_read;
  std::uint32_t body_end = 0;
  for (std::uint32_t k = 0; k < program.steps.size(); ++k) {
    const Program::Step& step = program.steps[k];
    const bool is_kernel = step.kind == Program::StepKind::Kernel;
    const bool is_inside = k < body_end;
    if (!is_kernel) body_end = std::max(body_end, end_of(program, k));
    for (const std::uint32_t buffer : buffers_of(program, step)) {
      if (buffer == kNoBuffer) continue;
      const std::uint32_t root = root_of(program, buffer);
      if (root != from && root != to) continue;
      if (!is_kernel) return false;
      if (root == from) {
        last_read = k;
      } else {
        if (is_inside) return false;  // a loop body reads again in its next iteration
        if (!first_write) first_write = k;
      }
    }
  }
  return first_write && (!last_read || *last_read <= *first_write);
}

}  // namespace tenon::inline program
