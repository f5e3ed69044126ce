// Schedules the copies of an offload plan.
#include "memory/evaluate.h"

#include <algorithm>
#include <numeric>

namespace tenon::memory {

// Lists the runs with their live bytes, and the lives of copied values.
void Evaluator::collect_runs() {
  run_items_.clear();
  live_.clear();
  live_ranges_.clear();
  life_of_.assign(problem_.values.size(), kNone);
  for (const Block& block : state_.blocks) {
    for (const CopyBack& copy : block.copies) life_of_[copy.value] = 0;
  }
  const auto begin_life = [&](std::uint32_t v) {
    const auto event = static_cast<std::uint32_t>(run_items_.size());
    life_of_[v] = static_cast<std::uint32_t>(live_ranges_.size());
    live_ranges_.push_back({v, event, event});
  };
  for (std::size_t number = 0; number < block_count(); ++number) {
    const Block& block = state_.blocks[number];
    if (number == block_of(middle_))
      middle_event_ = static_cast<std::uint32_t>(run_items_.size()) + state_.middle_run;
    auto copy = block.copies.begin();
    for (std::size_t r = 0; r < block.runs.size(); ++r) {
      const std::uint32_t item = block.runs[r].item;
      for (; copy != block.copies.end() && copy->run == r; ++copy) {
        const std::uint32_t left = life_of_[copy->value];
        begin_life(copy->value);
        swapped_.push_back({left, life_of_[copy->value]});
      }
      for (const std::uint32_t v : reads_[item]) {
        if (life_of_[v] != kNone)
          live_ranges_[life_of_[v]].last = static_cast<std::uint32_t>(run_items_.size());
      }
      for (const std::uint32_t v : makes_[item]) {
        if (life_of_[v] != kNone) begin_life(v);
      }
      run_items_.push_back(item);
      live_.push_back(state_.live_bytes[number + 1] + block.more[r]);
    }
  }
  for (std::uint32_t v = 0; v < life_of_.size(); ++v) {
    if (life_of_[v] != kNone && problem_.values[v].is_output)
      live_ranges_[life_of_[v]].last = static_cast<std::uint32_t>(run_items_.size()) - 1;
  }
}

// Copies out are queued in definition order and hold their bytes until they
// complete; an item that does not fit waits for the oldest copy. Copies back are scheduled the same
// way in reversed time. No copy crosses the middle event.
void Evaluator::transfer(std::uint64_t budget_bytes, Outcome& outcome) {
  const auto budget = static_cast<std::int64_t>(budget_bytes);
  const auto copy_s = [&](std::uint32_t life) {
    return problem_.link->latency_s +
           static_cast<double>(problem_.values[live_ranges_[life].value].bytes) /
               problem_.link->bytes_per_s;
  };
  const auto bytes_of = [&](std::uint32_t life) {
    return static_cast<std::int64_t>(problem_.values[live_ranges_[life].value].bytes);
  };
  std::vector<std::uint32_t> leaving, returning;
  for (const Swapped& swapped : swapped_) {
    // Needed back before all values are copied out.
    if (live_ranges_[swapped.back].begin < middle_event_) {
      outcome.peak_bytes = kImpossible;
      return;
    }
    leaving.push_back(swapped.left);
    returning.push_back(swapped.back);
  }
  std::sort(leaving.begin(), leaving.end(), [&](std::uint32_t x, std::uint32_t y) {
    return live_ranges_[x].begin < live_ranges_[y].begin;
  });
  std::stable_sort(returning.begin(), returning.end(), [&](std::uint32_t x, std::uint32_t y) {
    return live_ranges_[x].begin > live_ranges_[y].begin;
  });

  std::int64_t peak = 0;
  const auto pass = [&](const std::vector<std::uint32_t>& copies, bool is_forward) {
    const std::uint32_t begin = is_forward ? 0 : middle_event_;
    const auto end = is_forward ? middle_event_ : static_cast<std::uint32_t>(run_items_.size());
    double now = 0, link_free = 0;
    std::vector<double> done(copies.size());
    std::size_t queued = 0, oldest = 0, past = 0;
    std::int64_t held = 0;
    std::vector<char> is_held(copies.size(), 0);
    // Values ordered by last use.
    std::vector<std::uint32_t> by_use(copies.size());
    std::iota(by_use.begin(), by_use.end(), 0U);
    if (is_forward) {
      std::stable_sort(by_use.begin(), by_use.end(), [&](std::uint32_t x, std::uint32_t y) {
        return live_ranges_[copies[x]].last < live_ranges_[copies[y]].last;
      });
    }
    const auto release = [&](std::uint32_t event) {
      now = std::max(now, done[oldest]);
      if (is_held[oldest] != 0) held -= bytes_of(copies[oldest]);
      is_held[oldest] = 2;
      if (is_forward) {
        frees_.push_back({copies[oldest], event});
      } else {
        ins_.push_back({copies[oldest], event + 1});
      }
      ++oldest;
    };
    for (std::uint32_t k = 0; k < end - begin; ++k) {
      const std::uint32_t event = is_forward ? begin + k : end - 1 - k;
      // `held` counts values past their last use whose copies are pending, in addition to live
      // values. Completed copies release at once: that costs no time, and less live memory is
      // easier to place.
      while (oldest < queued && is_held[oldest] == 1 &&
             (done[oldest] <= now || live_[event] + held > budget)) {
        release(event);
      }
      peak = std::max(peak, live_[event] + held);
      now += problem_.items[run_items_[event]].alternatives[0].seconds;
      while (queued < copies.size()) {
        const LiveRange& life = live_ranges_[copies[queued]];
        if (life.begin != event) break;
        done[queued] = link_free = std::max(now, link_free) + copy_s(copies[queued]);
        ++queued;
      }
      for (; past < copies.size(); ++past) {
        const LiveRange& life = live_ranges_[copies[by_use[past]]];
        if (is_forward ? life.last > event : life.begin < event) break;
        is_held[by_use[past]] = 1;
        held += bytes_of(copies[by_use[past]]);
      }
    }
    while (oldest < queued) release(is_forward ? end : begin - 1);
    return now;
  };
  outcome.seconds = pass(leaving, true) + pass(returning, false);
  outcome.peak_bytes = static_cast<std::uint64_t>(peak);
}

std::vector<Event> Evaluator::events() const {
  std::vector<std::uint32_t> items;
  for (const Block& block : state_.blocks) {
    for (const Run& run : block.runs) items.push_back(run.item);
  }
  const std::size_t count = items.size();
  std::vector<std::vector<Event>> before(count + 1), after(count + 1);
  for (const Swapped& swapped : swapped_) {
    const LiveRange& life = live_ranges_[swapped.left];
    after[life.begin].push_back({Event::Kind::Out, life.value, 0});
  }
  for (const Copy& copy : frees_) {
    before[copy.event].push_back({Event::Kind::Free, live_ranges_[copy.life].value, 0});
  }
  // The reversed pass found the latest copies first.
  for (std::size_t k = ins_.size(); k-- > 0;) {
    before[ins_[k].event].push_back({Event::Kind::In, live_ranges_[ins_[k].life].value, 0});
  }
  std::vector<Event> events;
  for (std::size_t e = 0; e <= count; ++e) {
    events.insert(events.end(), before[e].begin(), before[e].end());
    if (e == count) break;
    events.push_back({Event::Kind::Run, items[e], 0});
    events.insert(events.end(), after[e].begin(), after[e].end());
  }
  return events;
}

}  // namespace tenon::memory
