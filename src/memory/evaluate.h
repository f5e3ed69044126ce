#pragma once

#include "memory/search.h"

namespace tenon::memory {

/// Tells quickly what a choice of treatments comes to: the events it means, the seconds they take
/// and the most that is alive at once.
class Evaluator {
 public:
  Evaluator(const Problem& problem, bool in_place);

  struct Outcome {
    double seconds = 0;
    std::uint64_t peak_bytes = 0;
  };
  /// `treatments` has one for each pause.
  Outcome evaluate(const std::vector<Treatment>& treatments, std::uint64_t budget_bytes);
  /// The events of the last call.
  std::vector<Event> events() const;
  /// Of the last call, which may not have copied anything: the item that runs, or that something is
  /// made again for, when most is alive.
  std::uint32_t peak_item() const;

  const std::vector<Pause>& pauses() const { return pauses_; }
  /// Everything kept from its making to its last use, nothing made again.
  std::vector<Treatment> plain_treatments() const;
  bool may_recompute(std::size_t pause) const;
  bool may_swap(std::size_t pause) const;
  /// Of the work that makes its value alone.
  double remake_seconds(std::size_t pause) const {
    return problem_.items[maker_[pauses_[pause].value]].ways[0].seconds;
  }
  /// The peak of treatments that mean no plan at all.
  static constexpr std::uint64_t kImpossible = std::uint64_t{1} << 60;
  static constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);

 private:
  struct Life {
    std::uint32_t value, begin, last;  // events, both included
    bool is_back;                      // copied back
  };
  struct Sharing {
    std::uint32_t event, result, operand;
  };
  struct Swapped {
    std::uint32_t left, back;  // lives
  };
  struct Copy {
    std::uint32_t life, event;  // a Free or an In, to come before this event
  };

  void remake(std::uint32_t value);
  void run(std::uint32_t item);
  void find_live_bytes();
  void transfer(std::uint64_t budget_bytes, Outcome& outcome);

  const Problem& problem_;
  bool in_place_;
  std::vector<std::uint32_t> maker_;
  std::vector<Pause> pauses_;
  std::vector<std::vector<std::uint32_t>> pauses_at_;  // by the item that they begin after
  std::uint32_t middle_ = 0;                           // base item that most unused bytes cross

  // Of the call.
  std::vector<std::uint32_t> current_;    // life, by value
  std::vector<std::uint32_t> run_items_;  // by event
  std::vector<std::uint32_t> made_for_;   // by event: the item whose turn it is
  std::uint32_t turn_ = 0;
  std::vector<Life> lives_;
  std::vector<Sharing> sharings_;
  std::vector<std::uint32_t> prologue_;
  std::vector<std::int64_t> live_;
  std::vector<char> is_taken_;
  std::vector<std::uint32_t> pause_of_;  // that the value is in, by value
  std::vector<Treatment> treatment_of_;  // by value: Keep outside of pauses
  std::vector<std::uint32_t> left_;      // the last life, by value
  std::vector<Swapped> swapped_;
  std::vector<Copy> frees_, ins_;
  std::uint32_t middle_event_ = 0;
};

}  // namespace tenon::memory
