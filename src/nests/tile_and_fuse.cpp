#include "nests/tile_and_fuse.h"

#include "nests/fused_nest.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace tenon::nests {
namespace {

// In how large blocks a loop may be cut: whole ones where that can be, else rows for several tiles.
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

// Longer sequences are looked for in vain, and a node can have any number of nests.
constexpr std::size_t kMostNests = 16;

struct Found {
  NestSequence::Part part;
  FusionCost cost;
  std::size_t first = 0;
  double gain() const { return cost.gain(); }
};

std::optional<Found> best_tile(const NestSequence& sequence, std::size_t first, std::size_t last,
                               const FusionPrices& prices) {
  const std::vector<Dim> extents = outer_extents(sequence.parts[last].nest.body);
  std::optional<Found> best;
  for (std::size_t depth = 0; depth < extents.size(); ++depth) {
    for (std::size_t cut = 0; cut <= depth; ++cut) {
      for (const std::int64_t block : blocks_of(extents[cut])) {
        if (block == 1 && cut != depth) continue;  // the order of single positions is no matter
        std::optional<FusedNest> fused =
            fused_nest(sequence, first, last, {depth, cut, block}, prices);
        if (!fused || fused->cost.gain() <= (best ? best->gain() : 0)) continue;
        best = Found{std::move(fused->part), fused->cost, first};
      }
    }
  }
  return best;
}

// A copy is worth no outer loops of its own, unless it is more than caches hold and little is
// computed of it, as where channels have windows of their own: then its lines come from memory
// once.
bool is_worth_loops(const LoopNest& copy, const FusionPrices& prices) {
  return std::ranges::any_of(copy.buffers, [&](const NestBuffer& buffer) {
    const Dim count = product(buffer.dims);
    return buffer.storage == Storage::Result && count.is_constant() &&
           static_cast<double>(count.constant()) *
                   static_cast<double>(info(buffer.dtype).storage_bytes) >
               prices.shared_bytes;
  });
}

// Whether computing what reads a copy takes longer than writing and reading that.
bool is_mostly_arithmetic(const FusionCost& cost) {
  return cost.flops > 2 * cost.prices.flops_per_byte * cost.handed_bytes;
}

}  // namespace

void tile_and_fuse(NestSequence& sequence, const FusionPrices& prices) {
  for (std::size_t last = sequence.parts.size(); last-- > 1;) {
    if (sequence.parts[last].is_scheduled) continue;
    std::optional<Found> best;
    for (std::size_t first = last; first-- > 0 && last - first < kMostNests;) {
      const bool is_copy = !best && !computes(sequence.parts[first].nest.body);
      if (is_copy && !is_worth_loops(sequence.parts[first].nest, prices)) break;
      std::optional<Found> longer = best_tile(sequence, first, last, prices);
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
