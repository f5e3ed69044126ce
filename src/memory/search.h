#pragma once

#include "memory/lifetimes.h"

#include <span>
#include <string_view>

namespace tenon::memory {

/// A time in which a value is not used: after the item that made or read it until the next that
/// reads it, other items in between.
struct Pause {
  /// items
  std::uint32_t value = 0, after = 0, before = 0;
};

/// What is done with a value in a pause.
enum class Treatment : std::uint8_t {
  Keep,
  /// dropped, made again when it is needed for something, and kept from then on
  Once,
  /// dropped, made again whenever it is needed for something
  Each,
  /// copied to the slower memory, and back before the next use
  Swap,
};

struct SearchOptions {
  /// of the arena
  std::uint64_t budget_bytes = 0;
  bool may_recompute = true, may_swap = false;
  /// Steps of the search for each restart, and restarts; 0: by the size of the problem.
  std::uint64_t step_limit = 0;
  int restarts = 0;
  PlaceOptions place;
  bool in_place = true;
};

struct SearchResult {
  /// the fastest found within the budget, or the smallest found
  Plan plan;
  /// of the problem's values
  std::vector<Pause> pauses;
  /// by pause
  std::vector<Treatment> treatments;
  bool is_within_budget = false;
  std::uint64_t evaluation_count = 0;
};

/// Decides for each value what is done with it between its uses, so that the placed arena is within
/// the budget at the least time. Simulated annealing on exact lifetimes; the best are placed.
SearchResult search(const Problem& problem, const SearchOptions& options);

struct OrderedResult {
  /// of those that were given
  std::size_t order = 0;
  SearchResult result;
};
/// The same in several orders of a problem's items: the best of all, or, unless `is_thorough`, of
/// the first in which there is a plan within the budget.
OrderedResult search_orders(std::span<const Problem> orders, const SearchOptions& options,
                            bool is_thorough);

}  // namespace tenon::memory
