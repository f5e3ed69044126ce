// Dynamic storage allocation: greedy heuristics, then branch and bound on a falling capacity.
#include "base/error.h"
#include "memory/arena.h"

#include <algorithm>

namespace tenon::memory {
namespace {

// Above this size branch and bound does not finish: heuristics only.
constexpr std::size_t kMaxSearchedBuffers = 5'000;
// Above this number of conflicts only the order with quasi-linear time is used.
constexpr std::uint64_t kMaxConflicts = 10'000'000;
// Maximum number of capacities tried between the bound and the best placement.
constexpr int kLadderSteps = 24;

std::uint64_t end_of(std::span<const ArenaBuffer> buffers,
                     const std::vector<std::uint64_t>& offsets, std::uint64_t alignment) {
  std::uint64_t end = 0;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].begin >= buffers[b].end) continue;
    const std::uint64_t size = (buffers[b].bytes + alignment - 1) / alignment * alignment;
    end = std::max(end, offsets[b] + size);
  }
  return end;
}

// Searches for a placement smaller than `arena`: first at the bound, which usually succeeds, then
// by bisection between failed and placed capacities.
void search(std::span<const ArenaBuffer> buffers, const PlaceOptions& options, Arena& arena) {
  // Sizes in units of the alignment, so that every offset is a multiple of it.
  std::vector<ArenaBuffer> scaled;
  std::vector<std::size_t> position;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    ArenaBuffer buffer = buffers[b];
    buffer.bytes = (buffer.bytes + options.alignment - 1) / options.alignment;
    if (buffer.bytes == 0 || buffer.begin >= buffer.end) continue;
    scaled.push_back(buffer);
    position.push_back(b);
  }
  const std::uint64_t unit = options.alignment;
  const std::uint64_t bound = arena.max_live_bytes / unit;
  std::uint64_t best = arena.bytes / unit;
  std::uint64_t proven = bound;  // No smaller capacity fits.
  const std::uint64_t wanted = std::max(bound, options.capacity ? *options.capacity / unit : bound);
  std::uint64_t target = wanted;
  for (int step = 0; step < kLadderSteps && best > wanted; ++step) {
    // The first attempt, at the wanted capacity, may use most of the nodes.
    const std::uint64_t left = options.node_limit - arena.node_count;
    const std::uint64_t share = step == 0 ? options.node_limit * 3 / 4 : left / 4;
    if (share == 0) break;
    FitSearch found = fit(scaled, target, share);
    arena.node_count += found.node_count;
    if (found.outcome == FitSearch::Outcome::Placed) {
      for (std::size_t k = 0; k < position.size(); ++k) {
        arena.offsets[position[k]] = found.offsets[k] * unit;
      }
      arena.bytes = end_of(buffers, arena.offsets, unit);
      best = arena.bytes / unit;
    } else if (found.outcome == FitSearch::Outcome::Impossible) {
      proven = std::max(proven, target + 1);
    }
    const std::uint64_t low = found.outcome == FitSearch::Outcome::Placed ? wanted : target + 1;
    if (best <= wanted || low >= best) break;
    target = low + (best - low) / 2;
  }
  arena.lower_bound_bytes = std::max(arena.lower_bound_bytes, proven * unit);
}

}  // namespace

double Arena::gap() const {
  if (lower_bound_bytes == 0) return 0;
  return static_cast<double>(bytes - lower_bound_bytes) / static_cast<double>(lower_bound_bytes);
}

Arena place(std::span<const ArenaBuffer> buffers, const PlaceOptions& options) {
  TENON_ASSERT(options.alignment > 0, "an alignment is positive");
  Arena arena;
  arena.max_live_bytes = max_live_bytes(buffers, options.alignment);
  arena.lower_bound_bytes = arena.max_live_bytes;
  const std::uint64_t wanted = std::max(arena.max_live_bytes, options.capacity.value_or(0));
  bool has_fixed = false;
  for (const ArenaBuffer& buffer : buffers)
    has_fixed = has_fixed || buffer.fixed_offset.has_value();
  const bool is_crowded = !has_fixed && conflict_count(buffers) > kMaxConflicts;
  for (GreedyOrder order : kGreedyOrders) {
    if (is_crowded && order != GreedyOrder::Start) continue;
    std::vector<std::uint64_t> offsets = place_greedily(buffers, order, options.alignment);
    const std::uint64_t end = end_of(buffers, offsets, options.alignment);
    if (!arena.offsets.empty() && end >= arena.bytes) continue;
    arena.offsets = std::move(offsets);
    arena.bytes = end;
    if (arena.bytes <= wanted) return arena;
  }
  if (!has_fixed && options.node_limit > 0 && buffers.size() <= kMaxSearchedBuffers) {
    search(buffers, options, arena);
  }
  return arena;
}

}  // namespace tenon::memory
