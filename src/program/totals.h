#pragma once

#include "program/program.h"

namespace tenon::inline program {

/// Summary of a program's size and work.
struct ProgramTotals {
  /// Steps that run kernels, and distinct kernels.
  std::size_t steps = 0, kernels = 0;
  /// Host steps.
  std::size_t operator_steps = 0;
  std::uint64_t code_bytes = 0, constant_bytes = 0, arena_bytes = 0;
  /// Work of one run, as far as it is statically known.
  double flops = 0;
};
ProgramTotals totals_of(const Program& program);

}  // namespace tenon::inline program
