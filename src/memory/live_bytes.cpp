// Live bytes of a choice of residencies, found backward over its runs.
#include "memory/evaluate.h"

#include <algorithm>

namespace tenon::memory {

// Finds the live values at block borders and the peaks of blocks, backward.
void Evaluator::find_live_bytes() {
  has_copies_ = state_.copy_count + kept_.copy_count > 0;
  if (run_blocks_.empty()) return;
  std::size_t next = run_blocks_.size();  // Blocks with new runs that are still to be scanned.
  std::size_t border = run_blocks_.back() + std::size_t{1};
  changed_live_ = {border, border};
  difference_.clear();
  copied_difference_.clear();
  while (border > 0) {
    const std::size_t block = border - 1;
    const std::uint64_t* touched = words(state_.touched, block);
    const bool is_touched = difference_.touches(touched) || copied_difference_.touches(touched);
    if (is_touched || has_new_runs_[block] != 0) {
      scan_block(block);
      difference_.find(words(kept_.live, block), words(state_.live, block), word_count_);
      if (has_copies_)
        copied_difference_.find(words(kept_.copied, block), words(state_.copied, block),
                                word_count_);
    } else if (!difference_.is_empty() || !copied_difference_.is_empty()) {
      difference_.apply(words(kept_.live, block), words(state_.live, block));
      copied_difference_.apply(words(kept_.copied, block), words(state_.copied, block));
      const std::int64_t more = state_.live_bytes[border] - kept_.live_bytes[border];
      state_.live_bytes[block] = kept_.live_bytes[block] + more;
      state_.peak_bytes[block] = kept_.peak_bytes[block] + more;
    } else {
      while (next > 0 && run_blocks_[next - 1] >= border) --next;
      if (next == 0) break;
      border = run_blocks_[--next] + std::size_t{1};
      continue;
    }
    border = block;
    changed_live_.first = border;
  }
}

void Evaluator::scan_block(std::size_t number) {
  Block& block = state_.blocks[number];
  scanned_blocks_.push_back(static_cast<std::uint32_t>(number));
  block.more.resize(block.runs.size());
  std::copy_n(words(state_.live, number + 1), word_count_, now_.data());
  if (has_copies_) std::copy_n(words(state_.copied, number + 1), word_count_, copied_.data());
  const std::int64_t after = state_.live_bytes[number + 1];
  std::int64_t live = after, peak = -1;
  std::size_t copy = block.copies.size();
  for (std::size_t r = block.runs.size(); r-- > 0;) {
    const auto [item, turn] = block.runs[r];
    std::int64_t bytes = live + workspace_[item];
    for (const std::uint32_t v : makes_[item]) {
      (has(now_.data(), v) ? live : bytes) += has(now_.data(), v) ? -bytes_[v] : bytes_[v];
      take(now_.data(), v);
      if (has_copies_) take(copied_.data(), v);
    }
    if (in_place_) bytes -= shared_bytes(item);
    for (const std::uint32_t v : reads_[item]) {
      if (has(now_.data(), v)) continue;
      put(now_.data(), v);
      live += bytes_[v];
      bytes += bytes_[v];
    }
    for (; copy > 0 && block.copies[copy - 1].run == r; --copy) {
      const std::uint32_t v = block.copies[copy - 1].value;
      (has(now_.data(), v) ? live : bytes) += has(now_.data(), v) ? -bytes_[v] : bytes_[v];
      take(now_.data(), v);
      put(copied_.data(), v);
    }
    block.more[r] = bytes - after;
    if (bytes < peak) continue;
    peak = bytes;
    state_.peak_item[number] = turn;
  }
  std::copy_n(now_.data(), word_count_, words(state_.live, number));
  if (has_copies_) std::copy_n(copied_.data(), word_count_, words(state_.copied, number));
  state_.live_bytes[number] = live;
  state_.peak_bytes[number] = peak;
}

// Returns the bytes of operands that die in an item and are overwritten by its results.
std::int64_t Evaluator::shared_bytes(std::uint32_t item) {
  const std::span<const std::uint32_t> shares = shares_[item];
  std::int64_t bytes = 0;
  taken_.clear();
  for (std::size_t k = 0; k < shares.size(); k += 2) {
    const std::uint32_t result = shares[k], operand = shares[k + 1];
    if (has(now_.data(), operand) || problem_.values[operand].is_output) continue;
    // An offloaded value cannot be overwritten in place: its copy may run as late as its last
    // reader.
    if (has_copies_ && has(copied_.data(), operand)) continue;
    const bool is_taken =
        std::ranges::any_of(taken_, [&](std::uint32_t v) { return v == result || v == operand; });
    if (is_taken) continue;
    taken_.insert(taken_.end(), {result, operand});
    bytes += bytes_[operand];
  }
  return bytes;
}

}  // namespace tenon::memory
