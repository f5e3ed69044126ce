#pragma once

#include "memory/lifetimes.h"

#include <functional>
#include <span>
#include <string_view>

namespace tenon::memory {

/// Interval between two uses of a value: from the item that defines or reads it to its next reader.
struct UseGap {
  /// Item indices.
  std::uint32_t value = 0, last_use = 0, next_use = 0;
};

/// Residency policy of a value during a gap.
enum class Residency : std::uint8_t {
  Keep,
  /// Evicted, recomputed at the next need and kept from there (RecomputeOnce).
  RecomputeOnce,
  /// Evicted, recomputed at every need (RecomputePerUse).
  RecomputePerUse,
  /// Copied to slow memory and prefetched before the next use (offload).
  Offload,
};

/// State of a running search.
struct SearchProgress {
  /// Index of the order of items that is searched, and number of orders.
  std::size_t order = 0, order_count = 1;
  /// Choices evaluated in this order.
  std::uint64_t evaluation_count = 0;
  /// Time of the fastest choice within the budget; none yet: infinite.
  double seconds = 0;
  /// Live bytes of the smallest choice.
  std::uint64_t smallest_bytes = 0;
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
  /// Called every thousand evaluations. The search ends with the best plan so far if it returns
  /// false.
  std::function<bool(const SearchProgress&)> goes_on = {};
};

struct SearchResult {
  /// The fastest plan within the budget; the smallest plan if the budget was not reached.
  Plan plan;
  /// Gaps of the problem's values.
  std::vector<UseGap> gaps;
  /// By gap.
  std::vector<Residency> residencies;
  bool is_within_budget = false;
  std::uint64_t evaluation_count = 0;
  /// `goes_on` ended the search.
  bool was_stopped = false;
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
