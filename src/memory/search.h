#pragma once

#include "memory/lifetimes.h"

#include <span>
#include <string_view>

namespace tenon::memory {

/// Interval between two uses of a value: from the item that defines or reads it to its next reader.
struct Pause {
  /// Item indices.
  std::uint32_t value = 0, after = 0, before = 0;
};

/// Residency policy of a value during a gap.
enum class Treatment : std::uint8_t {
  Keep,
  /// Evicted, recomputed at the next need and kept from there (RecomputeOnce).
  Once,
  /// Evicted, recomputed at every need (RecomputePerUse).
  Each,
  /// Copied to slow memory and prefetched before the next use (offload).
  Swap,
};

struct SearchOptions {
  /// Budget of the arena.
  std::uint64_t budget_bytes = 0;
  bool may_recompute = true, may_swap = false;
  /// Steps per restart, and number of restarts; 0: chosen by problem size.
  std::uint64_t step_limit = 0;
  int restarts = 0;
  PlaceOptions place;
  bool in_place = true;
};

struct SearchResult {
  /// The fastest plan within the budget; the smallest plan if the budget was not reached.
  Plan plan;
  /// Gaps of the problem's values.
  std::vector<Pause> pauses;
  /// By gap.
  std::vector<Treatment> treatments;
  bool is_within_budget = false;
  std::uint64_t evaluation_count = 0;
};

/// Rematerialization and offload: chooses a residency for every gap that minimizes step time within
/// the arena budget. Simulated annealing over exact lifetimes; candidate plans are placed before
/// they are accepted.
SearchResult search(const Problem& problem, const SearchOptions& options);

struct OrderedResult {
  /// Index into the given orders.
  std::size_t order = 0;
  SearchResult result;
};
/// Searches several orders of a problem's items. Returns the best result over all orders if
/// `is_thorough`, otherwise that of the first order with a plan within the budget.
OrderedResult search_orders(std::span<const Problem> orders, const SearchOptions& options,
                            bool is_thorough);

}  // namespace tenon::memory
