#include "program/routine_check.h"

#include "base/error.h"

namespace tenon {
namespace {

// Bodies inside bodies: deeper than any model nests, shallow enough for the stack.
constexpr int kMaxDepth = 64;

[[noreturn]] void refuse(std::string_view what) {
  throw Error("the program's routine does not hold together").got(what).hint("compile the model again");
}

void check_calls(const Program& program, const Routine::Step& step) {
  if (step.part >= program.parts.size()) refuse("a part that there is not");
  const Program& part = program.parts[step.part];
  if (step.operands.size() != part.inputs.size() || step.results.size() != part.outputs.size()) {
    refuse("a part with other inputs or outputs");
  }
  if (step.kind != Routine::Step::Kind::Scan) return;
  const std::uint64_t taken = std::uint64_t{step.state_count} + step.input_count;
  if (step.input_count == 0 || taken > step.operands.size() || step.state_count > step.results.size() ||
      step.input_is_reversed.size() != step.input_count ||
      step.output_is_reversed.size() != step.results.size() - step.state_count) {
    refuse("a scan of values that it does not have");
  }
}

void check(const Program& program, const Routine& routine, int depth) {
  if (depth > kMaxDepth) refuse("bodies inside bodies without end");
  std::uint64_t written = routine.inputs.size();
  for (const Routine::Step& step : routine.steps) written += step.results.size();
  if (routine.slot_count > written) refuse("slots that nothing writes");
  std::vector<bool> is_written(routine.slot_count, false);
  const auto write = [&](std::uint32_t slot) {
    if (slot >= routine.slot_count || is_written[slot]) refuse("a slot that is written twice, or is not there");
    is_written[slot] = true;
  };
  const auto read = [&](std::uint32_t slot) {
    if (slot >= routine.slot_count || !is_written[slot]) refuse("a slot that is read before it is written");
  };
  for (const std::uint32_t slot : routine.inputs) write(slot);
  for (const Routine::Step& step : routine.steps) {
    for (const std::uint32_t slot : step.operands) read(slot);
    if (step.kind == Routine::Step::Kind::Operators) {
      for (const Routine& body : step.bodies) check(program, body, depth + 1);
    } else {
      check_calls(program, step);
    }
    for (const std::uint32_t slot : step.results) write(slot);
  }
  for (const std::uint32_t slot : routine.outputs) read(slot);
}

}  // namespace

void require_routine(const Program& program) {
  for (const Program& part : program.parts) {
    if (part.is_composed() || !part.parts.empty()) refuse("a part that has parts");
  }
  if (program.routine.inputs.size() != program.inputs.size() || program.routine.outputs.size() != program.outputs.size()) {
    refuse("another number of inputs or outputs than the program says");
  }
  check(program, program.routine, 0);
}

}  // namespace tenon
