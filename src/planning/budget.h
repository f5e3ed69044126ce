#pragma once

#include "codegen/step_problem.h"
#include "memory/search.h"
#include "program/program.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tenon::planning {

/// Memory limit of a run, and the permitted means of staying within it.
struct BudgetRequest {
  /// "60%": of the arena without a budget. "1GiB": of a run's total memory: arena, inputs, outputs,
  /// constants, code, scratch.
  std::string budget;
  /// of the arena, overrides `budget`
  std::optional<std::uint64_t> arena_bytes = {};
  /// Permits offloading to a file, or from a device to host memory; rematerialization is always
  /// permitted.
  bool may_swap = false;
  /// 0: all threads of the process
  int threads = 0;
  /// permits gradient accumulation over parts of the batch
  bool may_split = false;
};

struct BudgetReport {
  /// of the arena
  std::uint64_t budget_bytes = 0;
  /// without a budget
  std::uint64_t plain_arena_bytes = 0;
  /// as planned
  std::uint64_t arena_bytes = 0;
  /// memory of a run outside of the arena
  std::uint64_t outside_bytes = 0;
  /// estimated time of a run
  double plain_seconds = 0, seconds = 0;
  /// times are measured, not estimated
  bool is_measured = false;
  std::size_t step_count = 0, repeated_count = 0;
  /// per run
  std::uint64_t swapped_bytes = 0;
  /// of the file, or of pinned host memory
  std::uint64_t swap_place_bytes = 0;
  /// "a file"
  std::string swap_place;
  /// micro-batches of the batch
  std::int64_t micro_batches = 1;

  double extra_time() const { return plain_seconds > 0 ? seconds / plain_seconds - 1 : 0; }
};
/// Returns one line of text.
std::string to_string(const BudgetReport& report);

/// Returns the arena budget in bytes: a share of `whole`, or a size that must also hold `outside`.
/// Throws Error (Usage) for invalid text.
std::uint64_t arena_budget(const std::string& text, std::uint64_t whole, std::uint64_t outside);

/// Returns the memory outside of the arena for a program without symbols; on a device an upper
/// bound.
std::uint64_t bytes_outside_arena(const Program& program, int threads);

/// Plans the memory of a program's steps within a budget by rematerialization and offloading: from
/// estimated times, and after a run from measured ones.
class BudgetPlanner {
 public:
  BudgetPlanner(Program plain, codegen::StepProblem described, const BudgetRequest& request);

  /// Returns a program within the budget with bit-identical results. Throws Error (OutOfMemory)
  /// with the proven lower bound and suggestions on failure.
  Program program();
  /// Uses measured seconds of each step of the last program. Returns whether a faster plan exists,
  /// which `program` then returns.
  bool learn(std::span<const double> step_seconds);
  const BudgetReport& report() const { return report_; }
  /// Sets the number of micro-batches, and the arena size with a single one.
  void set_micro_batches(std::int64_t micro_batches, std::uint64_t whole_arena_bytes);

 private:
  memory::SearchOptions search_options() const;
  void take(memory::Plan plan);
  [[noreturn]] void refuse(const memory::Plan& smallest) const;

  Program plain_;
  codegen::StepProblem described_;  // items in execution order
  bool may_swap_;
  memory::Plan plan_;
  std::vector<std::uint32_t> step_items_;  // item numbers of the plan's program
  BudgetReport report_;
};

/// Returns the planner of a compiled program. Throws Error (Unsupported) if it cannot be planned:
/// control flow, dynamic extents.
std::unique_ptr<BudgetPlanner> planned_within(Program plain,
                                              std::optional<codegen::StepProblem> described,
                                              const BudgetRequest& request);

}  // namespace tenon::planning
