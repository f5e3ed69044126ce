#pragma once

#include "program/program.h"

namespace tenon {

/// What a program amounts to.
struct ProgramTotals {
  /// steps that run kernels
  std::size_t steps = 0, kernels = 0;
  /// that run operators' C++ functions
  std::size_t operator_steps = 0;
  std::uint64_t code_bytes = 0, constant_bytes = 0, arena_bytes = 0;
  /// of one run, where that is known ahead
  double flops = 0;
};
ProgramTotals totals_of(const Program& program);

}  // namespace tenon
