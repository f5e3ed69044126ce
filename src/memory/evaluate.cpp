// Cost model of recomputation and offload plans: simulates a choice of residencies.
#include "memory/evaluate.h"

#include <algorithm>

namespace tenon::memory {
namespace {

// Words of a set of values per item of a block: sets then take memory and time like items do.
constexpr std::size_t kWordsPerItem = 8;

template <class List>
void copy_range(const List& from, List& to, std::size_t begin, std::size_t end) {
  std::copy(from.begin() + static_cast<std::ptrdiff_t>(begin),
            from.begin() + static_cast<std::ptrdiff_t>(end),
            to.begin() + static_cast<std::ptrdiff_t>(begin));
}

}  // namespace

void Evaluator::Lists::add(std::span<const std::uint32_t> list) {
  if (begin.empty()) begin.push_back(0);
  entries.insert(entries.end(), list.begin(), list.end());
  begin.push_back(static_cast<std::uint32_t>(entries.size()));
}

Evaluator::Evaluator(const Problem& problem, bool in_place)
    : problem_(problem), in_place_(in_place), maker_(problem.makers()) {
  find_pauses();
  for (const Item& item : problem.items) {
    reads_.add(item.reads);
    makes_.add(item.makes);
    std::vector<std::uint32_t> shares;
    for (const auto& [result, operand] : item.may_share)
      shares.insert(shares.end(), {result, operand});
    shares_.add(shares);
    item_seconds_.push_back(item.alternatives[0].seconds);
    workspace_.push_back(static_cast<std::int64_t>(item.alternatives[0].workspace_bytes));
  }
  for (const PlannedValue& value : problem.values)
    bytes_.push_back(static_cast<std::int64_t>(value.bytes));
  const std::size_t values = problem.values.size(), items = problem.items.size();
  word_count_ = (values + kWordBits - 1) / kWordBits;
  block_items_ = static_cast<std::uint32_t>(std::max<std::size_t>(1, word_count_ / kWordsPerItem));
  const std::size_t blocks = (items + block_items_ - 1) / block_items_;
  now_.resize(word_count_);
  copied_.resize(word_count_);
  has_new_runs_.resize(blocks);
  state_.residencies = all_kept();
  state_.blocks.resize(blocks);
  state_.touched.resize(blocks * word_count_);
  state_.present.resize((blocks + 1) * word_count_);
  state_.live.resize((blocks + 1) * word_count_);
  state_.copied.resize((blocks + 1) * word_count_);
  state_.live_bytes.resize(blocks + 1);
  state_.seconds.resize(blocks + 1);
  state_.peak_bytes.resize(blocks);
  state_.peak_item.resize(blocks);
  for (std::uint32_t v = 0; v < values; ++v) {
    if (!problem.values[v].is_output) continue;
    put(words(state_.live, blocks), v);
    state_.live_bytes[blocks] += bytes_[v];
  }
  kept_ = state_;
  changed_present_ = {0, blocks + 1};
  for (std::size_t block = 0; block < blocks; ++block) run_block(block);
  find_live_bytes();
  add_seconds();
  keep();
}

void Evaluator::find_pauses() {
  const Problem& problem = problem_;
  const std::size_t count = problem.items.size();
  std::vector<std::vector<std::uint32_t>> begins(count), of_value(problem.values.size());
  const auto add = [&](std::uint32_t value, std::uint32_t after, std::uint32_t before) {
    begins[after].push_back(static_cast<std::uint32_t>(gaps_.size()));
    of_value[value].push_back(static_cast<std::uint32_t>(gaps_.size()));
    gaps_.push_back({value, after, before});
  };
  std::vector<std::uint32_t> last_use = maker_;
  std::vector<std::int64_t> crossing(count + 1, 0);
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t v : problem.items[i].reads) {
      if (i - last_use[v] > 1) {
        add(v, last_use[v], i);
        crossing[last_use[v] + 1] += static_cast<std::int64_t>(problem.values[v].bytes);
        crossing[i] -= static_cast<std::int64_t>(problem.values[v].bytes);
      }
      last_use[v] = i;
    }
  }
  // The gap after the last use counts as well: a recomputation may read the value again.
  for (std::uint32_t v = 0; v < problem.values.size(); ++v) {
    if (problem.values[v].is_output || !problem.items[maker_[v]].may_repeat) continue;
    add(v, last_use[v], static_cast<std::uint32_t>(count));
  }
  for (const auto& list : begins) gaps_at_.add(list);
  for (const auto& list : of_value) pauses_of_.add(list);
  std::int64_t bytes = 0, most = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    bytes += crossing[i];
    if (bytes > most) {
      most = bytes;
      middle_ = i;
    }
  }
}

std::vector<Residency> Evaluator::all_kept() const {
  std::vector<Residency> residencies(gaps_.size(), Residency::Keep);
  for (std::size_t k = 0; k < gaps_.size(); ++k) {
    if (gaps_[k].next_use == problem_.items.size()) residencies[k] = Residency::RecomputePerUse;
  }
  return residencies;
}

bool Evaluator::may_recompute(std::size_t gap) const {
  return problem_.items[maker_[gaps_[gap].value]].may_repeat;
}

bool Evaluator::may_swap(std::size_t gap) const {
  return problem_.values[gaps_[gap].value].may_swap && gaps_[gap].last_use < middle_ &&
         gaps_[gap].next_use >= middle_ && gaps_[gap].next_use < problem_.items.size();
}

Evaluator::Outcome Evaluator::evaluate(const std::vector<Residency>& residencies,
                                       std::uint64_t budget_bytes) {
  copy_changes(kept_, state_);
  forget_changes();
  for (std::uint32_t gap = 0; gap < gaps_.size(); ++gap) {
    if (residencies[gap] == state_.residencies[gap]) continue;
    state_.residencies[gap] = residencies[gap];
    changed_pauses_.push_back(gap);
  }
  find_events();
  find_live_bytes();
  swapped_.clear();
  frees_.clear();
  ins_.clear();
  Outcome outcome;
  if (state_.copy_count == 0) {
    outcome.seconds = add_seconds();
    std::int64_t peak = 0;
    for (const std::int64_t bytes : state_.peak_bytes) peak = std::max(peak, bytes);
    outcome.peak_bytes = static_cast<std::uint64_t>(peak);
  } else {
    add_seconds();
    collect_runs();
    transfer(budget_bytes, outcome);
  }
  return outcome;
}

void Evaluator::keep() {
  copy_changes(state_, kept_);
  forget_changes();
}

void Evaluator::forget_changes() {
  for (const std::uint32_t block : run_blocks_) has_new_runs_[block] = 0;
  run_blocks_.clear();
  scanned_blocks_.clear();
  changed_pauses_.clear();
  changed_present_ = changed_live_ = {};
}

void Evaluator::copy_changes(const State& from, State& to) {
  for (const std::uint32_t gap : changed_pauses_) to.residencies[gap] = from.residencies[gap];
  for (const std::uint32_t block : run_blocks_) {
    to.blocks[block] = from.blocks[block];
    copy_range(from.touched, to.touched, block * word_count_, (block + 1) * word_count_);
  }
  for (const std::uint32_t block : scanned_blocks_) to.blocks[block].more = from.blocks[block].more;
  if (!run_blocks_.empty())
    copy_range(from.seconds, to.seconds, run_blocks_.front() + 1, block_count() + 1);
  const auto [present_begin, present_end] = changed_present_;
  copy_range(from.present, to.present, present_begin * word_count_, present_end * word_count_);
  const auto [live_begin, live_end] = changed_live_;
  copy_range(from.live, to.live, live_begin * word_count_, live_end * word_count_);
  if (has_copies_)
    copy_range(from.copied, to.copied, live_begin * word_count_, live_end * word_count_);
  copy_range(from.live_bytes, to.live_bytes, live_begin, live_end);
  copy_range(from.peak_bytes, to.peak_bytes, live_begin, live_end);
  copy_range(from.peak_item, to.peak_item, live_begin, live_end);
  to.copy_count = from.copy_count;
  to.middle_run = from.middle_run;
}

// Runs the blocks again in which a changed choice has an effect, in order.
void Evaluator::find_events() {
  const std::size_t none = block_count();
  // Returns the first block from `block` on in which a changed gap begins or may have an effect.
  const auto next_of_changes = [&](std::size_t block) {
    std::size_t next = none;
    for (const std::uint32_t gap : changed_pauses_) {
      const std::size_t begin = block_of(gaps_[gap].last_use);
      if (begin >= block) next = std::min(next, begin);
      if (begin < block && block <= block_of(gaps_[gap].next_use)) return block;
    }
    return next;
  };
  std::size_t block = next_of_changes(0);
  if (block < none) changed_present_ = {block + 1, block + 1};
  difference_.clear();
  while (block < none) {
    const std::uint64_t* kept_after = words(kept_.present, block + 1);
    std::uint64_t* after = words(state_.present, block + 1);
    if (difference_.touches(words(state_.touched, block)) || is_changed_in(block)) {
      run_block(block);
      difference_.find(kept_after, after, word_count_);
    } else if (!difference_.is_empty()) {
      difference_.apply(kept_after, after);
    } else {
      const std::size_t next = next_of_changes(block);
      if (next > block) {
        block = next;
        continue;
      }
    }
    ++block;
    changed_present_.second = block + 1;
  }
}

// Returns whether a changed gap begins in the block, or the block uses its value during it.
bool Evaluator::is_changed_in(std::size_t block) {
  const std::uint64_t* touched = words(state_.touched, block);
  return std::ranges::any_of(changed_pauses_, [&](std::uint32_t k) {
    const UseGap& gap = gaps_[k];
    const std::size_t begin = block_of(gap.last_use);
    return begin == block ||
           (begin < block && block <= block_of(gap.next_use) && has(touched, gap.value));
  });
}

void Evaluator::run_block(std::size_t number) {
  std::swap(block_, state_.blocks[number]);
  block_.runs.clear();
  block_.copies.clear();
  touched_ = words(state_.touched, number);
  std::fill_n(touched_, word_count_, 0);
  std::copy_n(words(state_.present, number), word_count_, now_.data());
  const auto first = static_cast<std::uint32_t>(number * block_items_);
  const auto end = std::min(first + block_items_, static_cast<std::uint32_t>(item_seconds_.size()));
  for (std::uint32_t i = first; i < end; ++i) {
    if (i == middle_) state_.middle_run = static_cast<std::uint32_t>(block_.runs.size());
    turn_ = i;
    prologue_.clear();
    for (const std::uint32_t v : reads_[i]) {
      if (!has(now_.data(), v)) recompute(v);
    }
    run(i);
    for (const std::uint32_t v : prologue_) {
      const std::uint32_t gap = pause_at(v, i);
      const bool is_dropped = gap != kNone && gaps_[gap].next_use != i &&
                              state_.residencies[gap] == Residency::RecomputePerUse;
      if (is_dropped) take(now_.data(), v);
    }
    for (const std::uint32_t gap : gaps_at_[i]) {
      if (state_.residencies[gap] != Residency::Keep) take(now_.data(), gaps_[gap].value);
    }
  }
  std::copy_n(now_.data(), word_count_, words(state_.present, number + 1));
  const Block& before = kept_.blocks[number];
  state_.copy_count += block_.copies.size();
  state_.copy_count -= before.copies.size();
  std::swap(block_, state_.blocks[number]);
  if (state_.blocks[number] == before) {
    state_.blocks[number].more = before.more;
    return;
  }
  has_new_runs_[number] = 1;
  run_blocks_.push_back(static_cast<std::uint32_t>(number));
}

// Returns the gap of a value that contains an item or ends with it.
std::uint32_t Evaluator::pause_at(std::uint32_t value, std::uint32_t item) const {
  for (const std::uint32_t gap : pauses_of_[value]) {
    if (gaps_[gap].last_use < item && item <= gaps_[gap].next_use) return gap;
  }
  return kNone;
}

void Evaluator::run(std::uint32_t item) {
  block_.runs.push_back({item, turn_});
  for (const std::uint32_t v : reads_[item]) put(touched_, v);
  for (const std::uint32_t v : makes_[item]) {
    put(touched_, v);
    put(now_.data(), v);
  }
}

void Evaluator::recompute(std::uint32_t value) {
  if (state_.residencies[pause_at(value, turn_)] == Residency::Offload) {
    // Copied back from slow memory; `transfer` decides when the copy begins.
    block_.copies.push_back({value, static_cast<std::uint32_t>(block_.runs.size())});
    put(now_.data(), value);
    return;
  }
  const std::uint32_t maker = maker_[value];
  for (const std::uint32_t v : reads_[maker]) {
    if (!has(now_.data(), v)) recompute(v);
  }
  run(maker);
  prologue_.insert(prologue_.end(), makes_[maker].begin(), makes_[maker].end());
}

// Adds the seconds of all runs, in order. Returns the sum.
double Evaluator::add_seconds() {
  if (run_blocks_.empty()) return state_.seconds.back();
  double sum = state_.seconds[run_blocks_.front()];
  for (std::size_t block = run_blocks_.front(); block < block_count(); ++block) {
    for (const Run& run : state_.blocks[block].runs) sum += item_seconds_[run.item];
    state_.seconds[block + 1] = sum;
  }
  return sum;
}

std::uint32_t Evaluator::peak_item() const {
  const auto peak = std::ranges::max_element(state_.peak_bytes);
  return state_.peak_item[static_cast<std::size_t>(peak - state_.peak_bytes.begin())];
}

}  // namespace tenon::memory
