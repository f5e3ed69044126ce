#include "program/arena.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace tenon::inline program {
namespace {

std::uint64_t rounded(std::uint64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

/// A range of the arena and the live intervals of its buffers, which do not overlap.
class ArenaSlot {
 public:
  bool is_busy(std::uint32_t first, std::uint32_t last) const {
    auto use = uses_.upper_bound(last);
    return use != uses_.begin() && (--use)->second >= first;
  }
  void use(std::uint32_t first, std::uint32_t last) { uses_.emplace(first, last); }

 private:
  std::map<std::uint32_t, std::uint32_t> uses_;  // first step to last step
};

/// Occupied ranges at one step. A buffer that is alive at that step must avoid them.
class Column {
 public:
  explicit Column(std::uint32_t step) : step_(step) {}

  bool is_within(std::uint32_t first, std::uint32_t last) const {
    return first <= step_ && step_ <= last;
  }

  /// Returns the lowest offset with this number of free bytes. Sizes must not increase between
  /// calls.
  std::uint64_t lowest_gap(std::uint64_t bytes) {
    if (bytes != asked_bytes_) lowest_ = 0;
    asked_bytes_ = bytes;
    auto range = used_.upper_bound(lowest_);
    if (range != used_.begin()) --range;
    for (; range != used_.end() && range->first < lowest_ + bytes; ++range) {
      lowest_ = std::max(lowest_, range->second);
    }
    return lowest_;
  }

  void use(std::uint64_t begin, std::uint64_t end) {
    auto next = used_.lower_bound(begin);
    if (next != used_.end() && next->first == end) {
      end = next->second;
      next = used_.erase(next);
    }
    if (next != used_.begin() && std::prev(next)->second == begin) {
      std::prev(next)->second = end;
    } else {
      used_.emplace_hint(next, begin, end);
    }
  }

 private:
  std::uint32_t step_;
  std::map<std::uint64_t, std::uint64_t> used_;  // begin to end; adjacent ranges are merged
  std::uint64_t asked_bytes_ = 0, lowest_ = 0;
};

// Returns the step with the highest memory use in each section of the run. Buffers that are alive
// at such a step must not overlap each other there, so their gaps are found without a search over
// all slots.
std::vector<Column> fullest_steps(std::span<const ArenaRequest> requests) {
  constexpr std::uint32_t kParts = 16, kMostSteps = 1U << 22;
  std::uint32_t end = 0;
  for (const ArenaRequest& request : requests) {
    // A file may contain any step numbers; without columns placement is only slower.
    if (request.first > request.last || request.last >= kMostSteps) return {};
    end = std::max(end, request.last + 1);
  }
  std::vector<std::int64_t> change(std::size_t{end} + 1, 0);
  for (const ArenaRequest& request : requests) {
    ++change[request.first];
    --change[std::size_t{request.last} + 1];
  }
  const std::uint32_t part = end / kParts + 1;
  std::vector<Column> columns;
  std::int64_t alive = 0;
  for (std::uint32_t begin = 0; begin < end; begin += part) {
    std::int64_t most = -1;
    std::uint32_t fullest = begin;
    for (std::uint32_t step = begin; step < std::min(end, begin + part); ++step) {
      alive += change[step];
      if (alive > most) fullest = step;
      most = std::max(most, alive);
    }
    columns.emplace_back(fullest);
  }
  return columns;
}

class Placer {
 public:
  explicit Placer(std::span<const ArenaRequest> requests) : columns_(fullest_steps(requests)) {}

  std::uint64_t place(const ArenaRequest& request) {
    const std::uint64_t bytes = rounded(request.bytes);
    if (bytes == 0) return 0;
    if (most_bytes_ == 0) most_bytes_ = bytes;  // requests are sorted by decreasing size
    std::uint64_t offset = 0;
    for (Column& column : columns_) {
      if (column.is_within(request.first, request.last)) {
        offset = std::max(offset, column.lowest_gap(bytes));
      }
    }
    const std::uint64_t begin = offset > most_bytes_ ? offset - most_bytes_ : 0;
    for (auto slot = slots_.lower_bound({begin, 0}); slot != slots_.end(); ++slot) {
      const auto& [there, there_bytes] = slot->first;
      if (there >= offset + bytes) break;
      if (there + there_bytes <= offset || !slot->second.is_busy(request.first, request.last))
        continue;
      offset = there + there_bytes;
    }
    slots_[{offset, bytes}].use(request.first, request.last);
    for (Column& column : columns_) {
      if (column.is_within(request.first, request.last)) column.use(offset, offset + bytes);
    }
    return offset;
  }

 private:
  std::vector<Column> columns_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, ArenaSlot> slots_;  // by offset and size
  std::uint64_t most_bytes_ = 0;
};

}  // namespace

ArenaPlan plan_arena(std::span<const ArenaRequest> requests) {
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const ArenaRequest &x = requests[a], &y = requests[b];
    if (x.bytes != y.bytes) return x.bytes > y.bytes;
    return x.last - x.first > y.last - y.first;
  });
  ArenaPlan plan;
  plan.offsets.assign(requests.size(), 0);
  Placer placer(requests);
  for (const std::size_t k : order) {
    plan.offsets[k] = placer.place(requests[k]);
    plan.bytes = std::max(plan.bytes, plan.offsets[k] + rounded(requests[k].bytes));
  }
  return plan;
}

}  // namespace tenon::inline program
