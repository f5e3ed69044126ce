// Greedy best-fit placement of buffers.
#include "memory/arena.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <queue>
#include <set>

namespace tenon::memory {
namespace {

std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Number of conflicts per buffer: buffers that begin before it ends, minus buffers that end before
// it begins.
std::vector<std::uint64_t> conflict_counts(std::span<const ArenaBuffer> buffers) {
  std::vector<std::uint32_t> begins, ends;
  for (const ArenaBuffer& buffer : buffers) {
    begins.push_back(buffer.begin);
    ends.push_back(buffer.end);
  }
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  std::vector<std::uint64_t> counts;
  for (const ArenaBuffer& buffer : buffers) {
    const auto begun = std::lower_bound(begins.begin(), begins.end(), buffer.end) - begins.begin();
    const auto ended = std::upper_bound(ends.begin(), ends.end(), buffer.begin) - ends.begin();
    counts.push_back(static_cast<std::uint64_t>(begun - ended));
  }
  return counts;
}

std::vector<std::uint32_t> ordered(std::span<const ArenaBuffer> buffers, GreedyOrder order) {
  std::vector<std::uint64_t> conflicts;
  if (order == GreedyOrder::Conflicts) conflicts = conflict_counts(buffers);
  const auto key = [&](std::uint32_t b) -> std::array<double, 3> {
    const ArenaBuffer& buffer = buffers[b];
    const auto size = static_cast<double>(buffer.bytes);
    const double length = buffer.end - buffer.begin;
    const double is_free = buffer.fixed_offset ? 0 : 1;  // Fixed buffers come first.
    switch (order) {
      case GreedyOrder::Size:
        return {is_free, -size, -length};
      case GreedyOrder::Area:
        return {is_free, -size * length, -size};
      case GreedyOrder::Start:
        return {is_free, static_cast<double>(buffer.begin), -size};
      case GreedyOrder::Conflicts:
        return {is_free, -static_cast<double>(conflicts[b]), -size};
      case GreedyOrder::Length:
        return {is_free, -length, -size};
    }
    return {};
  };
  std::vector<std::array<double, 3>> keys;
  for (std::uint32_t b = 0; b < buffers.size(); ++b) keys.push_back(key(b));
  std::vector<std::uint32_t> result(buffers.size());
  std::iota(result.begin(), result.end(), 0U);
  std::stable_sort(result.begin(), result.end(),
                   [&](std::uint32_t x, std::uint32_t y) { return keys[x] < keys[y]; });
  return result;
}

// Free intervals below `end_`, indexed by offset and by size.
class Gaps {
 public:
  /// Best fit: the tightest gap that holds the bytes, the lowest of equals; or the end.
  std::uint64_t take(std::uint64_t bytes) {
    const auto tightest = by_size_.lower_bound({bytes, 0});
    if (tightest == by_size_.end()) {
      end_ += bytes;
      return end_ - bytes;
    }
    const auto [gap, low] = *tightest;
    by_size_.erase(tightest);
    by_place_.erase(low);
    if (gap > bytes) add(low + bytes, gap - bytes);
    return low;
  }

  void give_back(std::uint64_t low, std::uint64_t bytes) {
    auto above = by_place_.lower_bound(low);
    if (above != by_place_.begin()) {
      const auto below = std::prev(above);
      if (below->first + below->second == low) {
        low = below->first;
        bytes += below->second;
        remove(below);
      }
    }
    if (above != by_place_.end() && low + bytes == above->first) {
      bytes += above->second;
      remove(above);
    }
    if (low + bytes == end_) {
      end_ = low;
    } else {
      add(low, bytes);
    }
  }

 private:
  void add(std::uint64_t low, std::uint64_t bytes) {
    by_place_.emplace(low, bytes);
    by_size_.emplace(bytes, low);
  }
  void remove(std::map<std::uint64_t, std::uint64_t>::iterator gap) {
    by_size_.erase({gap->second, gap->first});
    by_place_.erase(gap);
  }

  std::map<std::uint64_t, std::uint64_t> by_place_;            // Offset to bytes.
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  // Bytes, offset.
  std::uint64_t end_ = 0;
};

// Same placement as below for `GreedyOrder::Start`. Only buffers live at a buffer's first moment
// conflict with it, so one sweep over time suffices.
std::vector<std::uint64_t> placed_by_start(std::span<const ArenaBuffer> buffers,
                                           std::uint64_t alignment) {
  std::vector<std::uint64_t> offsets(buffers.size(), 0);
  using End = std::pair<std::uint32_t, std::uint32_t>;  // A moment and a buffer.
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  Gaps gaps;
  for (std::uint32_t b : ordered(buffers, GreedyOrder::Start)) {
    const ArenaBuffer& buffer = buffers[b];
    const std::uint64_t size = rounded_up(buffer.bytes, alignment);
    if (size == 0 || buffer.begin >= buffer.end) continue;
    for (; !ends.empty() && ends.top().first <= buffer.begin; ends.pop()) {
      const std::uint32_t gone = ends.top().second;
      gaps.give_back(offsets[gone], rounded_up(buffers[gone].bytes, alignment));
    }
    offsets[b] = gaps.take(size);
    ends.emplace(buffer.end, b);
  }
  return offsets;
}

bool has_fixed(std::span<const ArenaBuffer> buffers) {
  return std::any_of(buffers.begin(), buffers.end(),
                     [](const ArenaBuffer& buffer) { return buffer.fixed_offset.has_value(); });
}

}  // namespace

std::vector<std::uint64_t> place_greedily(std::span<const ArenaBuffer> buffers, GreedyOrder order,
                                          std::uint64_t alignment) {
  if (order == GreedyOrder::Start && !has_fixed(buffers))
    return placed_by_start(buffers, alignment);
  // Placed buffers, bucketed by time interval: of many buffers few overlap.
  std::uint32_t last_end = 1;
  for (const ArenaBuffer& buffer : buffers) last_end = std::max(last_end, buffer.end);
  const std::uint64_t stretch_count = std::clamp<std::uint64_t>(buffers.size() / 64, 1, 1024);
  const auto stretch_of = [&](std::uint32_t moment) {
    return static_cast<std::size_t>(std::uint64_t{moment} * stretch_count / last_end);
  };
  struct Placed {
    std::uint32_t begin, end;
    std::uint64_t low, high;
  };
  std::vector<std::vector<Placed>> stretches(stretch_count);
  std::vector<std::uint64_t> offsets(buffers.size(), 0);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
  for (std::uint32_t b : ordered(buffers, order)) {
    const ArenaBuffer& buffer = buffers[b];
    const std::uint64_t size = rounded_up(buffer.bytes, alignment);
    if (size == 0 || buffer.begin >= buffer.end) {
      offsets[b] = buffer.fixed_offset.value_or(0);
      continue;
    }
    if (buffer.fixed_offset) {
      offsets[b] = *buffer.fixed_offset;
    } else {
      taken.clear();
      for (std::size_t k = stretch_of(buffer.begin); k <= stretch_of(buffer.end - 1); ++k) {
        for (const Placed& placed : stretches[k]) {
          if (placed.begin < buffer.end && buffer.begin < placed.end) {
            taken.emplace_back(placed.low, placed.high);
          }
        }
      }
      std::sort(taken.begin(), taken.end());
      std::uint64_t end = 0, best = 0, best_gap = ~std::uint64_t{0};
      for (const auto& [low, high] : taken) {
        const std::uint64_t start = rounded_up(end, alignment);
        if (low >= start && low - start >= size && low - start < best_gap) {
          best_gap = low - start;
          best = start;
        }
        end = std::max(end, high);
      }
      offsets[b] = best_gap == ~std::uint64_t{0} ? rounded_up(end, alignment) : best;
    }
    for (std::size_t k = stretch_of(buffer.begin); k <= stretch_of(buffer.end - 1); ++k) {
      stretches[k].push_back({buffer.begin, buffer.end, offsets[b], offsets[b] + size});
    }
  }
  return offsets;
}

std::uint64_t conflict_count(std::span<const ArenaBuffer> buffers) {
  std::vector<std::uint32_t> begins, ends;
  for (const ArenaBuffer& buffer : buffers) {
    if (buffer.begin >= buffer.end) continue;
    begins.push_back(buffer.begin);
    ends.push_back(buffer.end);
  }
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  std::uint64_t pairs = 0;
  std::size_t ended = 0;
  for (std::size_t begun = 0; begun < begins.size(); ++begun) {
    while (ends[ended] <= begins[begun]) ++ended;
    pairs += begun - ended;
  }
  return pairs;
}

std::uint64_t max_live_bytes(std::span<const ArenaBuffer> buffers, std::uint64_t alignment) {
  std::vector<std::pair<std::uint32_t, std::int64_t>> changes;
  for (const ArenaBuffer& buffer : buffers) {
    if (buffer.begin >= buffer.end) continue;
    const auto bytes = static_cast<std::int64_t>(rounded_up(buffer.bytes, alignment));
    changes.emplace_back(buffer.begin, bytes);
    changes.emplace_back(buffer.end, -bytes);
  }
  std::sort(changes.begin(), changes.end());  // At equal moments, ends precede begins.
  std::int64_t live = 0, most = 0;
  for (const auto& [moment, change] : changes) {
    live += change;
    most = std::max(most, live);
  }
  return static_cast<std::uint64_t>(most);
}

}  // namespace tenon::memory
