// Cost model of recomputation and offload plans: simulates a choice of residencies.
#include "memory/evaluate.h"

#include <algorithm>
#include <numeric>

namespace tenon::memory {

Evaluator::Evaluator(const Problem& problem, bool in_place)
    : problem_(problem), in_place_(in_place), maker_(problem.makers()) {
  const std::size_t count = problem.items.size();
  pauses_at_.resize(count);
  std::vector<std::uint32_t> last_use = maker_;
  std::vector<std::int64_t> crossing(count + 1, 0);
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t v : problem.items[i].reads) {
      if (i - last_use[v] > 1) {
        pauses_at_[last_use[v]].push_back(static_cast<std::uint32_t>(pauses_.size()));
        pauses_.push_back({v, last_use[v], i});
        crossing[last_use[v] + 1] += static_cast<std::int64_t>(problem.values[v].bytes);
        crossing[i] -= static_cast<std::int64_t>(problem.values[v].bytes);
      }
      last_use[v] = i;
    }
  }
  // The gap after the last use counts as well: a recomputation may read the value again.
  for (std::uint32_t v = 0; v < problem.values.size(); ++v) {
    if (problem.values[v].is_output || !problem.items[maker_[v]].may_repeat) continue;
    pauses_at_[last_use[v]].push_back(static_cast<std::uint32_t>(pauses_.size()));
    pauses_.push_back({v, last_use[v], static_cast<std::uint32_t>(count)});
  }
  std::int64_t bytes = 0, most = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    bytes += crossing[i];
    if (bytes > most) {
      most = bytes;
      middle_ = i;
    }
  }
}

std::vector<Treatment> Evaluator::plain_treatments() const {
  std::vector<Treatment> treatments(pauses_.size(), Treatment::Keep);
  for (std::size_t k = 0; k < pauses_.size(); ++k) {
    if (pauses_[k].before == problem_.items.size()) treatments[k] = Treatment::Each;
  }
  return treatments;
}

bool Evaluator::may_recompute(std::size_t pause) const {
  return problem_.items[maker_[pauses_[pause].value]].may_repeat;
}

bool Evaluator::may_swap(std::size_t pause) const {
  return problem_.values[pauses_[pause].value].may_swap && pauses_[pause].after < middle_ &&
         pauses_[pause].before >= middle_ && pauses_[pause].before < problem_.items.size();
}

void Evaluator::run(std::uint32_t index) {
  const Item& item = problem_.items[index];
  const auto event = static_cast<std::uint32_t>(run_items_.size());
  run_items_.push_back(index);
  made_for_.push_back(turn_);
  for (std::uint32_t v : item.reads) lives_[current_[v]].last = event;
  const std::size_t first_sharing = sharings_.size();
  // emplace_back constructs in place. Copying an aggregate that was just written field by field
  // stalls on store forwarding.
  for (const auto& [result, operand] : item.may_share) {
    sharings_.emplace_back(event, result, current_[operand]);
  }
  for (std::uint32_t v : item.makes) {
    current_[v] = static_cast<std::uint32_t>(lives_.size());
    lives_.emplace_back(v, event, event, false);
  }
  for (std::size_t k = first_sharing; k < sharings_.size(); ++k) {
    sharings_[k].result = current_[sharings_[k].result];
  }
}

void Evaluator::remake(std::uint32_t value) {
  if (treatment_of_[value] == Treatment::Swap) {
    // Copied back from slow memory; `transfer` decides when the copy begins.
    const auto event = static_cast<std::uint32_t>(run_items_.size());
    current_[value] = static_cast<std::uint32_t>(lives_.size());
    swapped_.push_back({left_[value], current_[value]});
    lives_.push_back({value, event, event, true});
    return;
  }
  const std::uint32_t maker = maker_[value];
  for (std::uint32_t v : problem_.items[maker].reads) {
    if (current_[v] == kNone) remake(v);
  }
  run(maker);
  for (std::uint32_t v : problem_.items[maker].makes) prologue_.push_back(v);
}

Evaluator::Outcome Evaluator::evaluate(const std::vector<Treatment>& treatments,
                                       std::uint64_t budget_bytes) {
  current_.assign(problem_.values.size(), kNone);
  left_.assign(problem_.values.size(), kNone);
  pause_of_.assign(problem_.values.size(), kNone);
  treatment_of_.assign(problem_.values.size(), Treatment::Keep);
  run_items_.clear();
  made_for_.clear();
  lives_.clear();
  sharings_.clear();
  swapped_.clear();
  frees_.clear();
  ins_.clear();
  for (std::uint32_t i = 0; i < problem_.items.size(); ++i) {
    if (i == middle_) middle_event_ = static_cast<std::uint32_t>(run_items_.size());
    turn_ = i;
    prologue_.clear();
    for (std::uint32_t v : problem_.items[i].reads) {
      if (current_[v] == kNone) remake(v);
    }
    run(i);
    for (std::uint32_t v : prologue_) {
      const bool is_paused =
          treatment_of_[v] != Treatment::Keep && pauses_[pause_of_[v]].before != i;
      if (is_paused && treatment_of_[v] == Treatment::Each) current_[v] = kNone;
    }
    for (std::uint32_t v : problem_.items[i].reads) treatment_of_[v] = Treatment::Keep;
    for (std::uint32_t pause : pauses_at_[i]) {
      const std::uint32_t v = pauses_[pause].value;
      pause_of_[v] = pause;
      treatment_of_[v] = treatments[pause];
      if (treatments[pause] == Treatment::Keep) continue;
      left_[v] = current_[v];
      current_[v] = kNone;
    }
  }
  for (std::uint32_t v = 0; v < problem_.values.size(); ++v) {
    if (problem_.values[v].is_output && current_[v] != kNone) {
      lives_[current_[v]].last = static_cast<std::uint32_t>(run_items_.size()) - 1;
    }
  }
  find_live_bytes();
  Outcome outcome;
  if (swapped_.empty()) {
    for (std::uint32_t item : run_items_) outcome.seconds += problem_.items[item].ways[0].seconds;
    outcome.peak_bytes = static_cast<std::uint64_t>(*std::max_element(live_.begin(), live_.end()));
  } else {
    transfer(budget_bytes, outcome);
  }
  return outcome;
}

void Evaluator::find_live_bytes() {
  live_.assign(run_items_.size() + 2, 0);
  for (const Life& life : lives_) {
    const auto bytes = static_cast<std::int64_t>(problem_.values[life.value].bytes);
    live_[life.begin] += bytes;
    live_[life.last + 1] -= bytes;
  }
  if (in_place_ && !sharings_.empty()) {
    is_taken_.assign(lives_.size(), 0);
    // An offloaded value cannot be overwritten in place: its copy may run as late as its last
    // reader.
    for (const Swapped& swapped : swapped_) is_taken_[swapped.left] = 1;
    for (const Sharing& sharing : sharings_) {
      if (lives_[sharing.operand].last != sharing.event) continue;
      if (problem_.values[lives_[sharing.operand].value].is_output) continue;
      if ((is_taken_[sharing.operand] & 1) != 0 || (is_taken_[sharing.result] & 2) != 0) continue;
      is_taken_[sharing.operand] |= 1;
      is_taken_[sharing.result] |= 2;
      const auto bytes =
          static_cast<std::int64_t>(problem_.values[lives_[sharing.operand].value].bytes);
      live_[sharing.event] -= bytes;
      live_[sharing.event + 1] += bytes;
    }
  }
  for (std::size_t e = 1; e < live_.size(); ++e) live_[e] += live_[e - 1];
  for (std::size_t e = 0; e < run_items_.size(); ++e) {
    live_[e] += static_cast<std::int64_t>(problem_.items[run_items_[e]].ways[0].workspace_bytes);
  }
}

// Schedules the copies. Copies out are queued in definition order and hold their bytes until they
// complete; an item that does not fit waits for the oldest copy. Copies back are scheduled the same
// way in reversed time. No copy crosses the middle event.
void Evaluator::transfer(std::uint64_t budget_bytes, Outcome& outcome) {
  const auto budget = static_cast<std::int64_t>(budget_bytes);
  const auto copy_s = [&](std::uint32_t life) {
    return problem_.link->latency_s +
           static_cast<double>(problem_.values[lives_[life].value].bytes) /
               problem_.link->bytes_per_s;
  };
  const auto bytes_of = [&](std::uint32_t life) {
    return static_cast<std::int64_t>(problem_.values[lives_[life].value].bytes);
  };
  std::vector<std::uint32_t> leaving, returning;
  for (const Swapped& swapped : swapped_) {
    // Needed back before all values are copied out.
    if (lives_[swapped.back].begin < middle_event_) {
      outcome.peak_bytes = kImpossible;
      return;
    }
    leaving.push_back(swapped.left);
    returning.push_back(swapped.back);
  }
  std::sort(leaving.begin(), leaving.end(),
            [&](std::uint32_t x, std::uint32_t y) { return lives_[x].begin < lives_[y].begin; });
  std::stable_sort(returning.begin(), returning.end(), [&](std::uint32_t x, std::uint32_t y) {
    return lives_[x].begin > lives_[y].begin;
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
        return lives_[copies[x]].last < lives_[copies[y]].last;
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
      now += problem_.items[run_items_[event]].ways[0].seconds;
      while (queued < copies.size()) {
        const Life& life = lives_[copies[queued]];
        if (life.begin != event) break;
        done[queued] = link_free = std::max(now, link_free) + copy_s(copies[queued]);
        ++queued;
      }
      for (; past < copies.size(); ++past) {
        const Life& life = lives_[copies[by_use[past]]];
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

std::uint32_t Evaluator::peak_item() const {
  const auto end = live_.begin() + static_cast<std::ptrdiff_t>(run_items_.size());
  const auto peak = std::max_element(live_.begin(), end);
  return made_for_[static_cast<std::size_t>(peak - live_.begin())];
}

std::vector<Event> Evaluator::events() const {
  const std::size_t count = run_items_.size();
  std::vector<std::vector<Event>> before(count + 1), after(count + 1);
  for (const Swapped& swapped : swapped_) {
    const Life& life = lives_[swapped.left];
    after[life.begin].push_back({Event::Kind::Out, life.value, 0});
  }
  for (const Copy& copy : frees_) {
    before[copy.event].push_back({Event::Kind::Free, lives_[copy.life].value, 0});
  }
  // The reversed pass found the latest copies first.
  for (std::size_t k = ins_.size(); k-- > 0;) {
    before[ins_[k].event].push_back({Event::Kind::In, lives_[ins_[k].life].value, 0});
  }
  std::vector<Event> events;
  for (std::size_t e = 0; e <= count; ++e) {
    events.insert(events.end(), before[e].begin(), before[e].end());
    if (e == count) break;
    events.push_back({Event::Kind::Run, run_items_[e], 0});
    events.insert(events.end(), after[e].begin(), after[e].end());
  }
  return events;
}

}  // namespace tenon::memory
