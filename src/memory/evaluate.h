#pragma once

#include "memory/search.h"
#include "memory/value_set.h"

#include <span>

namespace tenon::memory {

/// Cost model of the search: predicts the events of a choice of residencies, their duration and the
/// peak of live bytes. A choice is one residency per gap.
///
/// Evaluation is incremental, relative to a baseline choice. Items form blocks of consecutive
/// items. A call simulates the blocks again in which the choice differs from the baseline, forward
/// to find their events and backward to find their live bytes. A block whose operands and results
/// are present as in the baseline keeps its events, and one whose values are live as in the
/// baseline keeps its peak up to a constant. Not thread-safe: every thread needs an evaluator of
/// its own.
class Evaluator {
 public:
  /// The problem must satisfy `verify` and outlive the evaluator. With `in_place`, a result reuses
  /// the bytes of an operand that dies at the same item (`Item::may_share`). The first baseline is
  /// `all_kept()`.
  Evaluator(const Problem& problem, bool in_place);

  struct Outcome {
    /// Predicted duration of all events, waits for copies included.
    double seconds = 0;
    /// Peak of live bytes; the arena may need more because of fragmentation.
    std::uint64_t peak_bytes = 0;
  };
  /// Simulates a choice. `residencies` has one entry per gap. The budget decides when copies have
  /// to wait, so it has no effect on a choice without Offload; `peak_bytes` may exceed it.
  Outcome evaluate(const std::vector<Residency>& residencies, std::uint64_t budget_bytes);
  /// Makes the choice of the last call the baseline: later calls for similar choices are fast.
  void keep();
  /// Returns the events of the last call.
  std::vector<Event> events() const;
  /// Returns the item at the peak of the last call, or the item that a recomputation at the peak
  /// serves. That call must be free of copies.
  std::uint32_t peak_item() const;

  /// All gaps of the problem's values.
  const std::vector<UseGap>& gaps() const { return gaps_; }
  /// Returns the choice that keeps each value from definition to last use.
  std::vector<Residency> all_kept() const;
  /// Returns whether the item that computes the gap's value may be repeated.
  bool may_recompute(std::size_t gap) const;
  /// Returns whether the gap's value may be offloaded: `PlannedValue::may_swap`, and the gap spans
  /// the middle item, where the values that wait for a later use have the most bytes.
  bool may_swap(std::size_t gap) const;
  /// Returns the time of the item that computes the gap's value, without recomputing its operands.
  double recompute_seconds(std::size_t gap) const {
    return problem_.items[maker_[gaps_[gap].value]].alternatives[0].seconds;
  }
  /// `peak_bytes` of a choice without a valid plan: a recomputation needs an offloaded value before
  /// the middle item, up to which all copies to slow memory complete.
  static constexpr std::uint64_t kImpossible = std::uint64_t{1} << 60;
  /// Null index.
  static constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);

 private:
  // Private names: a run is one execution of an item; a recomputation serves the original item
  // before which it runs (`turn`). A pause is a gap. A life is one lifetime of a value, from a
  // definition, recomputation or copy back to its last use. The middle is the item where most
  // unused bytes are live: values are copied out before it and copied back after it.

  // Lists in one array.
  struct Lists {
    std::vector<std::uint32_t> begin, entries;
    void add(std::span<const std::uint32_t> list);
    std::span<const std::uint32_t> operator[](std::size_t k) const {
      return {entries.data() + begin[k], entries.data() + begin[k + 1]};
    }
  };
  struct Run {
    std::uint32_t item, turn;  // `turn`: the original item that this run serves.
    bool operator==(const Run&) const = default;
  };
  struct CopyBack {
    std::uint32_t value, run;  // Ends before this run of its block.
    bool operator==(const CopyBack&) const = default;
  };
  struct Block {
    std::vector<Run> runs;
    std::vector<CopyBack> copies;
    // By run: live bytes beyond those at the end of the block.
    std::vector<std::int64_t> more;
    bool operator==(const Block& other) const {
      return runs == other.runs && copies == other.copies;
    }
  };
  using Words = std::vector<std::uint64_t>;  // Sets of values, one after another.
  struct State {
    std::vector<Residency> residencies;
    std::vector<Block> blocks;
    Words touched;        // By block: values that its runs read or make.
    Words present, live;  // By block border.
    Words copied;         // By block border: values whose next life begins with a copy.
    std::vector<std::int64_t> live_bytes;  // By block border.
    std::vector<double> seconds;           // By block border: all runs before it.
    std::vector<std::int64_t> peak_bytes;  // By block.
    std::vector<std::uint32_t> peak_item;  // By block.
    std::size_t copy_count = 0;
    std::uint32_t middle_run = 0;  // Position in its block.
  };
  struct LiveRange {
    std::uint32_t value, begin, last;  // Events, inclusive.
  };
  struct Swapped {
    std::uint32_t left, back;  // Indices of lives.
  };
  struct Copy {
    std::uint32_t life, event;  // A Free or In to insert before this event.
  };

  void find_pauses();
  std::size_t block_count() const { return state_.blocks.size(); }
  std::size_t block_of(std::uint32_t item) const { return item / block_items_; }
  std::uint64_t* words(Words& sets, std::size_t k) const { return sets.data() + k * word_count_; }
  void copy_changes(const State& from, State& to);
  void forget_changes();
  void find_events();
  void find_live_bytes();
  bool is_changed_in(std::size_t block);
  void run_block(std::size_t block);
  void scan_block(std::size_t block);
  void recompute(std::uint32_t value);
  void run(std::uint32_t item);
  std::uint32_t pause_at(std::uint32_t value, std::uint32_t item) const;
  std::int64_t shared_bytes(std::uint32_t item);
  double add_seconds();
  void collect_runs();
  void transfer(std::uint64_t budget_bytes, Outcome& outcome);

  const Problem& problem_;
  bool in_place_;
  std::vector<std::uint32_t> maker_;
  std::vector<UseGap> gaps_;
  Lists reads_, makes_, shares_;         // By item; shares: results and operands in turn.
  Lists gaps_at_;                        // By the item after which they begin.
  Lists pauses_of_;                      // By value, in order.
  std::vector<std::int64_t> bytes_;      // By value.
  std::vector<double> item_seconds_;     // By item.
  std::vector<std::int64_t> workspace_;  // By item.
  std::uint32_t middle_ = 0;             // Original item at which most unused bytes are live.
  std::uint32_t block_items_ = 1;
  std::size_t word_count_ = 1;

  State kept_, state_;  // `state_` is that of the last call.
  std::vector<std::uint32_t> changed_pauses_;
  std::vector<std::uint32_t> run_blocks_;  // Blocks whose runs differ from the kept ones.
  std::vector<std::uint32_t> scanned_blocks_;
  std::vector<char> has_new_runs_;                                      // By block.
  std::pair<std::size_t, std::size_t> changed_present_, changed_live_;  // Block borders.
  bool has_copies_ = false;

  // Buffers of one call:
  Words now_, copied_;
  SetDifference difference_, copied_difference_;  // At the last block border.
  Block block_;
  std::uint64_t* touched_ = nullptr;
  std::uint32_t turn_ = 0;
  std::vector<std::uint32_t> prologue_;
  std::vector<std::uint32_t> run_items_;  // By event.
  std::vector<std::int64_t> live_;        // By event.
  std::vector<std::uint32_t> life_of_;    // By value.
  std::vector<std::uint32_t> taken_;
  std::vector<LiveRange> live_ranges_;
  std::vector<Swapped> swapped_;
  std::vector<Copy> frees_, ins_;
  std::uint32_t middle_event_ = 0;
};

}  // namespace tenon::memory
