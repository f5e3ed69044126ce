#include "program/totals.h"

namespace tenon::inline program {
namespace {

// The kernels of a body count once per iteration; not at all if the trip count depends on data.
void add(const Program& program, std::uint32_t begin, std::uint32_t end, double run_count,
         ProgramTotals& totals) {
  for (std::uint32_t k = begin; k < end; k = end_of(program, k)) {
    const Program::Step& step = program.steps[k];
    if (step.kind == Program::StepKind::Kernel) {
      ++totals.steps;
      totals.flops += run_count * step.flops;
      continue;
    }
    const bool is_loop = step.kind == Program::StepKind::Loop;
    if (step.kind == Program::StepKind::Host) ++totals.operator_steps;
    add(program, k + 1, end_of(program, k),
        is_loop ? run_count * program.loops[step.detail].run_count : 0, totals);
  }
}

}  // namespace

ProgramTotals totals_of(const Program& program) {
  ProgramTotals totals;
  totals.kernels = program.kernels.size();
  totals.code_bytes = program.code.size();
  totals.constant_bytes = program.constant_bytes;
  totals.arena_bytes = program.arena_bytes;
  add(program, 0, static_cast<std::uint32_t>(program.steps.size()), 1, totals);
  return totals;
}

}  // namespace tenon::inline program
