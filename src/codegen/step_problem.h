#pragma once

#include "memory/problem.h"
#include "program/program.h"
#include "target/facts.h"
#include "tasks/task_list.h"

#include <optional>
#include <vector>

namespace tenon::codegen {

/// The memory-planning problem of a program with selected kernels: every arena buffer is a value,
/// workspace included.
struct StepProblem {
  /// Items are numbered and may be reordered.
  memory::Problem problem;
  /// By item number: consecutive steps.
  std::vector<std::vector<std::uint32_t>> steps;
  /// By value. Outputs live outside the arena and have size 0.
  std::vector<std::uint32_t> buffers;
};

/// Describes the program that `assemble` builds from the tasks; times are estimates for `threads`
/// threads. No value if extents are symbolic.
std::optional<StepProblem> step_problem(const TaskList& tasks, const TargetFacts& facts,
                                        int threads);

/// Applies a memory plan to a program: reorders steps, repeats recomputed ones, places every
/// instance of a value, and adds transfers for offloaded values. Kernels and code are unchanged, so
/// results are bit-identical. `step_items`, if given, receives the item number of each step.
Program apply_plan(const Program& program, const StepProblem& described, const memory::Plan& plan,
                   std::vector<std::uint32_t>* step_items = nullptr);

}  // namespace tenon::codegen
