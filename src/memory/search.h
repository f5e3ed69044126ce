#pragma once

#include "memory/lifetimes.h"

#include <functional>
#include <span>
#include <string_view>

namespace tenon::memory {

/// Interval between two uses of a value: from the item that defines or reads it to its next reader.
/// Items are the problem's units of work, in execution order; values are their results
/// (`memory/problem.h`).
struct UseGap {
  /// Indices: `value` in `Problem::values`, the uses in `Problem::items`. `next_use` equals the
  /// number of items in the gap after the last use, which matters because a recomputed item may
  /// read the value again.
  std::uint32_t value = 0, last_use = 0, next_use = 0;
};

/// Residency policy of a value during a gap.
enum class Residency : std::uint8_t {
  /// Stays in the arena.
  Keep,
  /// Evicted, recomputed at the first use in the gap, or at its end, and kept from there. Uses in a
  /// gap are those of recomputed items.
  RecomputeOnce,
  /// Evicted, recomputed at every use.
  RecomputePerUse,
  /// Copied to slow memory over `Problem::link` and copied back before the next use.
  Offload,
};

/// State of a running search. Times are predictions in seconds, from the times of the problem's
/// items and of its link.
struct SearchProgress {
  /// Index of the problem that `search_orders` searches, and number of problems; 0 of 1 in
  /// `search`.
  std::size_t order = 0, order_count = 1;
  /// Number of candidate plans evaluated so far, each with one residency per gap.
  std::uint64_t evaluation_count = 0;
  /// Time of the fastest candidate within the budget; infinity if there is none yet.
  double seconds = 0;
  /// Peak of live bytes of the smallest candidate.
  std::uint64_t smallest_bytes = 0;
};

struct SearchOptions {
  /// Upper bound on the size of the arena, without `Problem::fixed_bytes`.
  std::uint64_t budget_bytes = 0;
  /// Residencies that the search may assign. Recomputation needs items with `may_repeat`; offload
  /// needs a link and values with `may_swap`. Without either, the plan keeps every value.
  bool may_recompute = true, may_swap = false;
  /// Annealing steps per restart. 0: 40 million divided by the number of items, within 1,500 and
  /// 60,000.
  std::uint64_t step_limit = 0;
  /// Number of restarts. 0: three, or one if a single item exceeds the budget.
  int restarts = 0;
  /// Alignment and node limit for offsets. `capacity` is ignored: the budget replaces it.
  PlaceOptions place;
  /// A result may overwrite an operand that dies at the same item (`Item::may_share`).
  bool in_place = true;
  /// Progress callback, called on the searching thread every thousand evaluations. If it returns
  /// false, the search ends with the best plan so far.
  std::function<bool(const SearchProgress&)> goes_on = {};
};

struct SearchResult {
  /// The fastest plan within the budget, with offsets; the smallest plan if no plan fits. A missed
  /// budget is no error: check `is_within_budget`.
  Plan plan;
  /// All gaps of the problem's values.
  std::vector<UseGap> gaps;
  /// Residencies of the plan, indexed as `gaps`.
  std::vector<Residency> residencies;
  /// `plan.arena_bytes` is at most the budget.
  bool is_within_budget = false;
  std::uint64_t evaluation_count = 0;
  /// `goes_on` ended the search.
  bool was_stopped = false;
};

/// Rematerialization and offload: chooses a residency for every gap that minimizes step time within
/// the arena budget. Simulated annealing over exact lifetimes; candidate plans are placed before
/// they are accepted. Deterministic: equal problems and options give equal results, unless
/// `goes_on` ends the search. The problem must satisfy `verify`.
SearchResult search(const Problem& problem, const SearchOptions& options);

struct OrderedResult {
  /// Index into the given problems.
  std::size_t order = 0;
  SearchResult result;
};
/// Searches several execution orders of the same items, each given as a problem; at least one.
/// Returns the best result over all orders if `is_thorough`, otherwise that of the first order with
/// a plan within the budget. A plan within 1 % of the time without a budget ends the search.
OrderedResult search_orders(std::span<const Problem> orders, const SearchOptions& options,
                            bool is_thorough);

}  // namespace tenon::memory
