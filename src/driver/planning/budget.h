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

namespace tenon {

/// How much memory a run may take, and what may be done to stay within it.
struct BudgetRequest {
  /// "60%": of the arena that the program takes without a budget. "1GiB": of all that a run holds:
  /// arena, inputs, outputs, constants, code, what kernels keep for themselves.
  std::string budget;
  /// of the arena, whatever `budget` says
  std::optional<std::uint64_t> arena_bytes = {};
  /// To a file, from a device to the host's memory; running steps again always may be.
  bool may_swap = false;
  /// 0: as many as the process may use
  int threads = 0;
  /// the batch of a training step may be worked off in parts
  bool may_split = false;
};

struct BudgetReport {
  /// of the arena
  std::uint64_t budget_bytes = 0;
  /// without a budget
  std::uint64_t plain_arena_bytes = 0;
  /// as planned
  std::uint64_t arena_bytes = 0;
  /// what a run holds beside the arena
  std::uint64_t outside_bytes = 0;
  /// of a run, as the plan counts
  double plain_seconds = 0, seconds = 0;
  /// these were measured, not estimated
  bool is_measured = false;
  std::size_t step_count = 0, repeated_count = 0;
  /// each run
  std::uint64_t swapped_bytes = 0;
  /// of the file, or of the host's memory, which is pinned
  std::uint64_t swap_place_bytes = 0;
  /// "a file"
  std::string swap_place;
  /// of the batch, one after another
  std::int64_t parts = 1;

  double extra_time() const { return plain_seconds > 0 ? seconds / plain_seconds - 1 : 0; }
};
/// In a line.
std::string to_string(const BudgetReport& report);

/// The bytes of an arena that a text means: a share of `whole`, or a size that has to hold
/// `outside` too. Throws Error (Usage) for what is neither.
std::uint64_t arena_budget(const std::string& text, std::uint64_t whole, std::uint64_t outside);

/// What a run of a program without symbols holds beside its arena; on a device at most.
std::uint64_t bytes_outside_arena(const Program& program, int threads);

/// Plans the memory of a program's steps within a budget: by estimates, and once it has run, by the
/// times that were measured.
class BudgetPlanner {
 public:
  BudgetPlanner(Program plain, codegen::StepProblem described, const BudgetRequest& request);

  /// The program that keeps the budget; its results are those of the plain one, bit for bit. Throws
  /// Error (OutOfMemory) with what is proven and what would help where none was found.
  Program program();
  /// Takes the seconds of each step of the last program for true. Tells whether there is a plan
  /// that is faster by them: what `program` gives from then on.
  bool learn(std::span<const double> step_seconds);
  const BudgetReport& report() const { return report_; }
  /// Of a step that works its batch off in parts: what it takes in one.
  void set_parts(std::int64_t parts, std::uint64_t whole_arena_bytes);

 private:
  memory::SearchOptions search_options() const;
  void take(memory::Plan plan);
  [[noreturn]] void refuse(const memory::Plan& smallest) const;

  Program plain_;
  codegen::StepProblem described_;  // its items in the order in which they run
  bool may_swap_;
  memory::Plan plan_;
  std::vector<std::uint32_t> step_items_;  // of the plan's program: item numbers
  BudgetReport report_;
};

/// The planner of a program just compiled. Throws Error (Unsupported) where it cannot be planned:
/// control flow, extents that are not known.
std::unique_ptr<BudgetPlanner> planned_within(Program plain,
                                              std::optional<codegen::StepProblem> described,
                                              const BudgetRequest& request);

}  // namespace tenon
