#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tenon::memory {

/// A buffer that is live during the moments [begin, end).
struct ArenaBuffer {
  std::uint64_t bytes = 0;
  std::uint32_t begin = 0, end = 0;
  /// Required offset, if it is predetermined.
  std::optional<std::uint64_t> fixed_offset;
};

struct Arena {
  /// Indexed by buffer.
  std::vector<std::uint64_t> offsets;
  /// Highest end of any buffer.
  std::uint64_t bytes = 0;
  /// Peak of the sum of live buffers.
  std::uint64_t max_live_bytes = 0;
  /// Lower bound on any placement: at least `max_live_bytes`, higher if a search proved more.
  std::uint64_t lower_bound_bytes = 0;
  /// Nodes of the search tree.
  std::uint64_t node_count = 0;

  bool is_optimal() const { return bytes == lower_bound_bytes; }
  /// Excess over the lower bound, as a share of the bound.
  double gap() const;
};

struct PlaceOptions {
  /// Offsets are multiples of the alignment, and sizes are rounded up to one.
  std::uint64_t alignment = 1;
  /// The search ends at the first placement within this capacity. Without a value it minimizes.
  std::optional<std::uint64_t> capacity;
  /// Node limit of the exact search, in total. 0: heuristics only.
  std::uint64_t node_limit = 2'000'000;
};

/// Places buffers so that buffers with overlapping lifetimes do not overlap in memory (dynamic
/// storage allocation). Greedy heuristics first; branch and bound closes a remaining gap. Equal
/// buffers and options give equal offsets.
Arena place(std::span<const ArenaBuffer> buffers, const PlaceOptions& options = {});

/// Returns the peak of the sum of live buffers, each size rounded up to the alignment.
std::uint64_t max_live_bytes(std::span<const ArenaBuffer> buffers, std::uint64_t alignment = 1);

/// Returns the number of pairs of buffers with overlapping lifetimes.
std::uint64_t conflict_count(std::span<const ArenaBuffer> buffers);

/// Order in which a greedy placement visits the buffers.
enum class GreedyOrder : std::uint8_t { Size, Area, Start, Conflicts, Length };
inline constexpr GreedyOrder kGreedyOrders[] = {GreedyOrder::Size, GreedyOrder::Area,
                                                GreedyOrder::Start, GreedyOrder::Conflicts,
                                                GreedyOrder::Length};
/// Best-fit placement: each buffer goes into the tightest gap that holds it, or on top. Time is
/// quasi-linear in the number of buffers for `GreedyOrder::Start` without fixed offsets, otherwise
/// linear in the number of conflicting pairs.
std::vector<std::uint64_t> place_greedily(std::span<const ArenaBuffer> buffers, GreedyOrder order,
                                          std::uint64_t alignment = 1);

/// Result of the search for a placement within a capacity.
struct FitSearch {
  enum class Outcome : std::uint8_t { Placed, Impossible, CutOff } outcome = Outcome::CutOff;
  /// Filled if placed.
  std::vector<std::uint64_t> offsets;
  std::uint64_t node_count = 0;
};
/// Branch and bound: complete unless the node limit cuts it off. Fixed offsets are not supported.
FitSearch fit(std::span<const ArenaBuffer> buffers, std::uint64_t capacity,
              std::uint64_t node_limit);

}  // namespace tenon::memory
