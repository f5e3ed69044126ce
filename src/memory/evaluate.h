#pragma once

#include "memory/search.h"

namespace tenon::memory {

/// Evaluates a choice of treatments quickly: its events, their duration and the peak of live bytes.
class Evaluator {
 public:
  Evaluator(const Problem& problem, bool in_place);

  struct Outcome {
    double seconds = 0;
    std::uint64_t peak_bytes = 0;
  };
  /// `treatments` has one entry per pause.
  Outcome evaluate(const std::vector<Treatment>& treatments, std::uint64_t budget_bytes);
  /// Events of the last call.
  std::vector<Event> events() const;
  /// The item at the peak of the last call, or the item that a recomputation at the peak serves.
  /// That call must be free of copies.
  std::uint32_t peak_item() const;

  const std::vector<Pause>& pauses() const { return pauses_; }
  /// Keeps each value from definition to last use, without recomputation.
  std::vector<Treatment> plain_treatments() const;
  bool may_recompute(std::size_t pause) const;
  bool may_swap(std::size_t pause) const;
  /// Time of the item that computes the pause's value, without recomputing its operands.
  double remake_seconds(std::size_t pause) const {
    return problem_.items[maker_[pauses_[pause].value]].ways[0].seconds;
  }
  /// Peak of treatments that have no valid plan.
  static constexpr std::uint64_t kImpossible = std::uint64_t{1} << 60;
  static constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);

 private:
  struct Life {
    std::uint32_t value, begin, last;  // Events, inclusive.
    bool is_back;                      // Copied back from slow memory.
  };
  struct Sharing {
    std::uint32_t event, result, operand;
  };
  struct Swapped {
    std::uint32_t left, back;  // Indices of lives.
  };
  struct Copy {
    std::uint32_t life, event;  // A Free or In to insert before this event.
  };

  void remake(std::uint32_t value);
  void run(std::uint32_t item);
  void find_live_bytes();
  void transfer(std::uint64_t budget_bytes, Outcome& outcome);

  const Problem& problem_;
  bool in_place_;
  std::vector<std::uint32_t> maker_;
  std::vector<Pause> pauses_;
  // Indexed by the item after which they begin.
  std::vector<std::vector<std::uint32_t>> pauses_at_;
  std::uint32_t middle_ = 0;  // Original item at which most unused bytes are live.

  // State of the last call:
  std::vector<std::uint32_t> current_;    // Life, by value.
  std::vector<std::uint32_t> run_items_;  // By event.
  std::vector<std::uint32_t> made_for_;   // By event: the original item that this event serves.
  std::uint32_t turn_ = 0;
  std::vector<Life> lives_;
  std::vector<Sharing> sharings_;
  std::vector<std::uint32_t> prologue_;
  std::vector<std::int64_t> live_;
  std::vector<char> is_taken_;
  std::vector<std::uint32_t> pause_of_;  // The value's current gap, by value.
  std::vector<Treatment> treatment_of_;  // By value: Keep outside of gaps.
  std::vector<std::uint32_t> left_;      // The life that was copied out last, by value.
  std::vector<Swapped> swapped_;
  std::vector<Copy> frees_, ins_;
  std::uint32_t middle_event_ = 0;
};

}  // namespace tenon::memory
