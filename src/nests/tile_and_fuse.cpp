#include "nests/tile_and_fuse.h"

#include "nests/fused_nest.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace tenon::nests {
namespace {

// Candidate tile sizes of a loop: divisors of the extent, and multiples of 16 that are powers of
// two.
std::vector<std::int64_t> blocks_of(const Dim& extent) {
  std::vector<std::int64_t> blocks;
  if (!extent.is_constant()) return {1, 32};
  const std::int64_t whole = extent.constant();
  for (std::int64_t block = 1; block <= std::min<std::int64_t>(whole, kMaxFusedBlock); ++block) {
    if (whole % block == 0 ||
        (block % 16 == 0 && std::has_single_bit(static_cast<std::uint64_t>(block)))) {
      blocks.push_back(block);
    }
  }
  return blocks;
}

// Longer chains do not pay, and a node can have any number of nests.
constexpr std::size_t kMostNests = 16;

struct FusionCandidate {
  NestSequence::NestCall part;
  FusionCost cost;
  std::size_t first = 0;
  double gain() const { return cost.gain(); }
};

std::optional<FusionCandidate> best_tile(const NestSequence& sequence, std::size_t first,
                                         std::size_t last, const FusionPrices& prices) {
  const std::vector<Dim> extents = outer_extents(sequence.parts[last].nest.body);
  std::optional<FusionCandidate> best;
  for (std::size_t depth = 0; depth < extents.size(); ++depth) {
    for (std::size_t cut = 0; cut <= depth; ++cut) {
      for (const std::int64_t block : blocks_of(extents[cut])) {
        if (block == 1 && cut != depth) continue;  // The order of unit tiles does not matter.
        std::optional<FusedNest> fused =
            fused_nest(sequence, first, last, {depth, cut, block}, prices);
        if (!fused || fused->cost.gain() <= (best ? best->gain() : 0)) continue;
        best = FusionCandidate{std::move(fused->part), fused->cost, first};
      }
    }
  }
  return best;
}

// A copy does not justify outer loops of its own, unless it exceeds the caches and its consumer
// computes little, as in depthwise convolutions: fusion then reads its lines from memory once.
bool is_worth_loops(const LoopNest& copy, const FusionPrices& prices) {
  return std::ranges::any_of(copy.buffers, [&](const NestBuffer& buffer) {
    const Dim count = product(buffer.dims);
    return buffer.storage == StorageClass::Result && count.is_constant() &&
           static_cast<double>(count.constant()) *
                   static_cast<double>(info(buffer.dtype).storage_bytes) >
               prices.shared_bytes;
  });
}

// Returns whether arithmetic takes longer than writing and rereading the copy.
bool is_mostly_arithmetic(const FusionCost& cost) {
  return cost.flops > 2 * cost.prices.machine_balance * cost.handed_bytes;
}

}  // namespace

void tile_and_fuse(NestSequence& sequence, const FusionPrices& prices) {
  for (std::size_t last = sequence.parts.size(); last-- > 1;) {
    if (sequence.parts[last].is_indivisible) continue;
    std::optional<FusionCandidate> best;
    for (std::size_t first = last; first-- > 0 && last - first < kMostNests;) {
      const bool is_copy = !best && !computes(sequence.parts[first].nest.body);
      if (is_copy && !is_worth_loops(sequence.parts[first].nest, prices)) break;
      std::optional<FusionCandidate> longer = best_tile(sequence, first, last, prices);
      if (!longer) break;
      if (is_copy && is_mostly_arithmetic(longer->cost)) break;
      if (!best || longer->gain() > best->gain()) best = std::move(longer);
    }
    if (!best) continue;
    const auto from = static_cast<std::ptrdiff_t>(best->first),
               end = static_cast<std::ptrdiff_t>(last);
    sequence.parts[best->first] = std::move(best->part);
    sequence.parts.erase(sequence.parts.begin() + from + 1, sequence.parts.begin() + end + 1);
    last = best->first;
  }
}

}  // namespace tenon::nests
