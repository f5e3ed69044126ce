#pragma once

#include "distributed/step_memory.h"
#include "planning/budget.h"

#include <cstdint>

namespace tenon::distributed {

/// Memory of a training rank, in bytes.
struct RankNeeds {
  /// double-buffered, current and next values
  std::uint64_t states = 0;
  /// gradients, gathered parameters, values between stages
  std::uint64_t exchanged = 0;
  std::uint64_t arena = 0;

  std::uint64_t outside_arena() const { return states + exchanged; }
  std::uint64_t total() const { return outside_arena() + arena; }
};

/// Distribution of the work that has to fit.
struct RankShares {
  std::int64_t ranks = 1;
  /// parts of a batch, and samples per part
  std::int64_t micro_batches = 1, micro_batch_size = 1;
  bool splits_parameters = false;
};

/// Throws Error (OutOfMemory) if the total exceeds `limit`, with a suggestion: a smaller batch, or,
/// if the states alone do not fit, more ranks to split them over.
void require_fits(const RankNeeds& needs, std::uint64_t limit, const RankShares& shares);

/// Returns the memory available to each rank of this machine, from physical memory or the cgroup
/// limit.
std::uint64_t memory_of_rank();

/// Returns a compiler for the processor that keeps a program's arena within `arena_bytes` by
/// rematerialization and whatever else the request allows; results are bit-identical.
std::function<Program(Graph graph)> compiler_within(std::uint64_t arena_bytes,
                                                    const planning::BudgetRequest& request);

}  // namespace tenon::distributed
