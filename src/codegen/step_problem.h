#pragma once

#include "memory/problem.h"
#include "program/program.h"
#include "target/facts.h"
#include "tasks/task_list.h"

#include <optional>
#include <vector>

namespace tenon::codegen {

/// What planning the memory of a program asks about its steps, kernels being chosen: everything
/// that lies in its arena is a value, workspace too.
struct StepProblem {
  /// its items have numbers, and may be put in another order
  memory::Problem problem;
  /// by item's number: steps, one after another
  std::vector<std::vector<std::uint32_t>> steps;
  /// by value; outputs, which lie elsewhere, take 0 bytes
  std::vector<std::uint32_t> buffers;
};

/// Of the program that `assemble` makes of the tasks; times are estimates for `threads` threads.
/// Nothing where symbols decide extents.
std::optional<StepProblem> step_problem(const TaskList& tasks, const TargetFacts& facts,
                                        int threads);

/// The program with its steps as the plan says: in that order, some of them again, each result
/// where it was placed; what the plan copies out and in becomes transfers. Kernels and code stay as
/// they are, and so does every bit of the results. `step_items`, if given, gets the number of each
/// step's item.
Program carried_out(const Program& program, const StepProblem& described, const memory::Plan& plan,
                    std::vector<std::uint32_t>* step_items = nullptr);

}  // namespace tenon::codegen
