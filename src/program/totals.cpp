#include "program/totals.h"

namespace tenon {
namespace {

double flops_of(const Program& part) {
  double flops = 0;
  for (const Program::Step& step : part.steps) flops += step.flops;
  return flops;
}

void add(const Program& program, const Routine& routine, double run_count, ProgramTotals& totals) {
  for (const Routine::Step& step : routine.steps) {
    if (step.kind == Routine::Step::Kind::Operators) {
      ++totals.operator_steps;
      for (const Routine& body : step.bodies) add(program, body, 0, totals);
    } else {
      totals.flops += run_count * step.run_count * flops_of(program.parts[step.part]);
    }
  }
}

}  // namespace

ProgramTotals totals_of(const Program& program) {
  ProgramTotals totals;
  totals.steps = program.steps.size();
  totals.kernels = program.kernels.size();
  totals.code_bytes = program.code.size();
  totals.constant_bytes = program.constant_bytes;
  totals.arena_bytes = program.arena_bytes;
  totals.flops = flops_of(program);
  for (const Program& part : program.parts) {
    totals.steps += part.steps.size();
    totals.kernels += part.kernels.size();
    totals.code_bytes += part.code.size();
    totals.constant_bytes += part.constant_bytes;
    totals.arena_bytes += part.arena_bytes;
  }
  add(program, program.routine, 1, totals);
  return totals;
}

}  // namespace tenon
