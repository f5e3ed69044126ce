#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tenon::memory {

/// Bytes that are needed at the moments [begin, end).
struct ArenaBuffer {
  std::uint64_t bytes = 0;
  std::uint32_t begin = 0, end = 0;
  /// Where it has to lie, if that is not to be chosen.
  std::optional<std::uint64_t> fixed_offset;
};

struct Arena {
  /// by buffer
  std::vector<std::uint64_t> offsets;
  /// the end of the buffer that lies highest
  std::uint64_t bytes = 0;
  /// the most that is needed at one moment
  std::uint64_t max_live_bytes = 0;
  /// No placement takes less: at least `max_live_bytes`, more where a search has proven it.
  std::uint64_t lower_bound_bytes = 0;
  /// of the search tree
  std::uint64_t node_count = 0;

  bool is_optimal() const { return bytes == lower_bound_bytes; }
  /// What is wasted, as a part of the bound.
  double gap() const;
};

struct PlaceOptions {
  /// Every offset is a multiple of it, and every size is rounded up to one.
  std::uint64_t alignment = 1;
  /// Good enough: the search ends at the first placement within it. Nothing: the least there is.
  std::optional<std::uint64_t> capacity;
  /// How many nodes the exact search may visit in all. None: heuristics only.
  std::uint64_t node_limit = 2'000'000;
};

/// Places buffers so that no two that are needed at one moment overlap. Heuristics first; where
/// they leave a gap, branch and bound. The same buffers and options give the same offsets.
Arena place(std::span<const ArenaBuffer> buffers, const PlaceOptions& options = {});

/// The most that is needed at one moment, each size rounded up to the alignment.
std::uint64_t max_live_bytes(std::span<const ArenaBuffer> buffers, std::uint64_t alignment = 1);

/// How many pairs of buffers are needed at one moment.
std::uint64_t conflict_count(std::span<const ArenaBuffer> buffers);

/// In which order a greedy placement takes the buffers.
enum class GreedyOrder : std::uint8_t { Size, Area, Start, Conflicts, Length };
inline constexpr GreedyOrder kGreedyOrders[] = {GreedyOrder::Size, GreedyOrder::Area,
                                                GreedyOrder::Start, GreedyOrder::Conflicts,
                                                GreedyOrder::Length};
/// Each in turn into the tightest gap that holds it, or on top. Takes as long as there are buffers
/// in the order of their beginnings, where none has its place; otherwise as there are pairs that
/// meet.
std::vector<std::uint64_t> place_greedily(std::span<const ArenaBuffer> buffers, GreedyOrder order,
                                          std::uint64_t alignment = 1);

/// What came of looking for a placement within a capacity.
struct FitSearch {
  enum class Outcome : std::uint8_t { Placed, Impossible, CutOff } outcome = Outcome::CutOff;
  /// if placed
  std::vector<std::uint64_t> offsets;
  std::uint64_t node_count = 0;
};
/// Branch and bound: complete, unless the limit cuts it off. No buffer may have a fixed offset.
FitSearch fit(std::span<const ArenaBuffer> buffers, std::uint64_t capacity,
              std::uint64_t node_limit);

}  // namespace tenon::memory
