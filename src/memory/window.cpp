// Optimal reordering of a window around the peak: dynamic programming over subsets.
#include "memory/window.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <span>
#include <tuple>
#include <utility>

namespace tenon::memory {
namespace {

constexpr int kMaxRounds = 64;

// Peak bytes and the number of steps that reach it.
struct WindowPeak {
  std::int64_t bytes = 0;
  std::size_t steps = 0, first = 0;
  bool operator<(const WindowPeak& other) const {
    return std::pair(bytes, steps) < std::pair(other.bytes, other.steps);
  }
};

struct LiveProfile {
  std::vector<std::int64_t> before;  // Live bytes when a step begins.
  WindowPeak peak;
};

LiveProfile profile_of(const Tasks& tasks, const Sequence& sequence) {
  LiveProfile profile;
  std::vector<std::size_t> waiting(tasks.values.size());
  for (std::size_t value = 0; value < waiting.size(); ++value) {
    waiting[value] = tasks.values[value].readers.size() + (tasks.values[value].is_output ? 1 : 0);
  }
  std::int64_t held = 0;
  for (std::size_t step = 0; step < sequence.size(); ++step) {
    const std::uint32_t task = sequence[step];
    profile.before.push_back(held);
    for (std::uint32_t value : tasks.makes[task]) held += tasks.values[value].bytes;
    const std::int64_t now = held + tasks.inner_bytes[task];
    if (now > profile.peak.bytes || step == 0) profile.peak = {now, 0, step};
    if (now == profile.peak.bytes) ++profile.peak.steps;
    for (std::uint32_t value : tasks.makes[task]) {
      if (waiting[value] == 0) held -= tasks.values[value].bytes;
    }
    for (std::uint32_t value : tasks.reads[task]) {
      if (--waiting[value] == 0) held -= tasks.values[value].bytes;
    }
  }
  return profile;
}

/// All orders of consecutive tasks, indexed by the set of completed ones.
class ReorderWindow {
 public:
  ReorderWindow(const Tasks& tasks, const Sequence& sequence, std::size_t start, std::size_t count,
                std::int64_t held)
      : count_(count), held_(held) {
    std::vector<std::uint32_t> members(
        sequence.begin() + static_cast<std::ptrdiff_t>(start),
        sequence.begin() + static_cast<std::ptrdiff_t>(start + count));
    std::vector<std::uint32_t> touched;
    for (std::uint32_t task : members) {
      touched.insert(touched.end(), tasks.makes[task].begin(), tasks.makes[task].end());
      touched.insert(touched.end(), tasks.reads[task].begin(), tasks.reads[task].end());
      std::int64_t made = tasks.inner_bytes[task];
      for (std::uint32_t value : tasks.makes[task]) made += tasks.values[value].bytes;
      takes_.push_back(made);
      needs_.push_back(mask_of(members, tasks.needs[task]));
    }
    std::ranges::sort(touched);
    const auto rest = std::ranges::unique(touched);
    touched.erase(rest.begin(), rest.end());
    std::vector<bool> is_after(tasks.size(), false);
    for (std::size_t step = start + count; step < sequence.size(); ++step)
      is_after[sequence[step]] = true;
    // Values with the same maker and readers are merged: a concat may read any number of values.
    std::map<std::tuple<std::size_t, std::size_t, bool>, std::int64_t> bytes_of;
    for (std::uint32_t value : touched) {
      const Tasks::ScheduledValue& known = tasks.values[value];
      const bool is_kept =
          known.is_output || std::ranges::any_of(known.readers, [&](std::uint32_t reader) {
            return is_after[reader];
          });
      bytes_of[{mask_of(members, std::span(&known.maker, 1)), mask_of(members, known.readers),
                is_kept}] += known.bytes;
    }
    for (const auto& [use, bytes] : bytes_of) {
      items_.push_back({bytes, std::get<0>(use), std::get<1>(use), std::get<2>(use)});
    }
  }

  // Returns positions in the window in the best order.
  std::vector<std::size_t> best_order() const {
    const std::size_t all = (std::size_t{1} << count_) - 1;
    constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
    std::vector<std::int64_t> peaks(all + 1, kNever);
    std::vector<std::uint8_t> last(all + 1, 0);
    peaks[0] = 0;
    for (std::size_t done = 0; done < all; ++done) {
      if (peaks[done] == kNever) continue;
      const std::int64_t held = held_after(done);
      for (std::size_t task = 0; task < count_; ++task) {
        const std::size_t bit = std::size_t{1} << task;
        if ((done & bit) != 0 || (needs_[task] & ~done) != 0) continue;
        const std::int64_t peak = std::max(peaks[done], held + takes_[task]);
        if (peak >= peaks[done | bit]) continue;
        peaks[done | bit] = peak;
        last[done | bit] = static_cast<std::uint8_t>(task);
      }
    }
    std::vector<std::size_t> order;
    for (std::size_t done = all; done != 0; done &= ~(std::size_t{1} << order.back())) {
      order.push_back(last[done]);
    }
    std::ranges::reverse(order);
    return order;
  }

 private:
  struct Item {
    std::int64_t bytes;
    std::size_t maker, readers;  // Bit sets over the window's tasks.
    bool is_kept;                // Has a reader after the window, or is an output.
  };

  template <class List>
  static std::size_t mask_of(const std::vector<std::uint32_t>& members, const List& tasks) {
    std::size_t mask = 0;
    for (std::uint32_t task : tasks) {
      const auto found = std::ranges::find(members, task);
      if (found != members.end()) mask |= std::size_t{1} << (found - members.begin());
    }
    return mask;
  }

  std::int64_t held_after(std::size_t done) const {
    std::int64_t held = held_;
    for (const Item& item : items_) {
      if (item.maker != 0 && (done & item.maker) == 0) continue;
      if (item.maker != 0) held += item.bytes;
      if (!item.is_kept && (item.readers & ~done) == 0) held -= item.bytes;
    }
    return held;
  }

  std::size_t count_;
  std::int64_t held_;
  std::vector<std::int64_t> takes_;
  std::vector<std::size_t> needs_;
  std::vector<Item> items_;
};

Sequence with_best_window(const Tasks& tasks, const Sequence& sequence, std::size_t start,
                          std::int64_t held) {
  const std::size_t count = std::min(kWindow, sequence.size() - start);
  const std::vector<std::size_t> order =
      ReorderWindow(tasks, sequence, start, count, held).best_order();
  Sequence changed = sequence;
  for (std::size_t k = 0; k < count; ++k) changed[start + k] = sequence[start + order[k]];
  return changed;
}

}  // namespace

Sequence with_best_windows(const Tasks& tasks, Sequence sequence) {
  LiveProfile profile = profile_of(tasks, sequence);
  for (int round = 0; round < kMaxRounds; ++round) {
    bool is_better = false;
    const std::size_t at = profile.peak.first;
    for (const std::size_t behind : {kWindow / 2, kWindow - 2, std::size_t{2}}) {
      const std::size_t last_start = sequence.size() > kWindow ? sequence.size() - kWindow : 0;
      const std::size_t start = std::min(at > behind ? at - behind : 0, last_start);
      Sequence changed = with_best_window(tasks, sequence, start, profile.before[start]);
      if (changed == sequence) continue;
      LiveProfile other = profile_of(tasks, changed);
      if (!(other.peak < profile.peak)) continue;
      sequence = std::move(changed);
      profile = std::move(other);
      is_better = true;
      break;
    }
    if (!is_better) break;
  }
  return sequence;
}

}  // namespace tenon::memory
