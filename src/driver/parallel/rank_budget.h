#pragma once

#include "driver/parallel/step_place.h"
#include "driver/planning/budget.h"

#include <cstdint>

namespace tenon {

/// What a rank holds while it trains, in bytes.
struct RankNeeds {
  /// with the place that a step writes them to
  std::uint64_t states = 0;
  /// gradients, parameters put together, what stages hand on
  std::uint64_t exchanged = 0;
  std::uint64_t arena = 0;

  std::uint64_t outside_arena() const { return states + exchanged; }
  std::uint64_t total() const { return outside_arena() + arena; }
};

/// How ranks share the work that has to fit.
struct RankShares {
  std::int64_t ranks = 1;
  /// of a batch; samples of each
  std::int64_t parts = 1, part_size = 1;
  bool splits_parameters = false;
};

/// Throws Error (OutOfMemory) unless that fits in `limit` bytes, saying what would: a smaller
/// batch, or where not even the states do, more ranks to split them over.
void require_fits(const RankNeeds& needs, std::uint64_t limit, const RankShares& shares);

/// What each rank of this machine can have of its memory, or of what its group of processes is
/// allowed to take.
std::uint64_t memory_of_rank();

/// Compiles for the processor so that a program's arena stays within `arena_bytes`, by running
/// steps again and whatever else the request allows; the results are the same, bit for bit.
std::function<Program(Graph graph)> compiler_within(std::uint64_t arena_bytes,
                                                    const BudgetRequest& request);

}  // namespace tenon
