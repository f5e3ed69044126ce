#pragma once

#include <x86intrin.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tenon {

/// The processor's own clock, the same on all cores: asking it costs a few nanoseconds, so that
/// every step of a run can be watched.
inline std::uint64_t ticks() { return __rdtsc(); }
/// How long one tick is; measured once, which takes some milliseconds.
double seconds_per_tick();

/// When the steps of one run of a program's kernels began and ended, and when each thread worked at
/// them. The run fills it without allocating.
class Watch {
 public:
  static constexpr bool is_on = true;
  /// What one thread did of a step: from its first item to its last.
  struct Piece {
    std::uint64_t begin = 0, end = 0;
    bool is_there() const { return end != 0; }
  };
  struct Step {
    std::uint64_t start = 0, end = 0;
    bool is_there() const { return end != 0; }
  };

  /// Makes room for some of a program's steps. What was seen before is forgotten.
  void prepare(std::size_t step_count, std::size_t thread_count, std::size_t first_step = 0);
  std::size_t first_step() const { return first_; }
  std::size_t step_count() const { return steps_.size(); }
  /// By step of the program; those that were left out are not there.
  const Step& step(std::size_t index) const { return steps_[index - first_]; }
  std::span<const Piece> pieces(std::size_t step) const {
    return {pieces_.data() + (step - first_) * thread_count_, thread_count_};
  }

  // Called by the run.
  void begin_run() { last_ = ticks(); }
  // A step starts where the one before ended: together they are the whole run.
  void end_step(std::size_t step) {
    Step& seen = steps_[step - first_];
    seen.start = last_;
    seen.end = last_ = ticks();
  }
  // What a device tells: how long each step of the program took, one after another from the
  // beginning.
  void put(std::span<const double> seconds);
  void saw(std::size_t step, std::size_t thread, std::uint64_t begin) {
    Piece& piece = pieces_[(step - first_) * thread_count_ + thread];
    if (!piece.is_there()) piece.begin = begin;
    piece.end = ticks();
  }

 private:
  std::vector<Step> steps_;
  std::vector<Piece> pieces_;  // by step and thread
  std::size_t first_ = 0, thread_count_ = 0;
  std::uint64_t last_ = 0;
};

/// Looks at nothing and costs nothing.
struct NoWatch {
  static constexpr bool is_on = false;
  void begin_run() {}
  void end_step(std::size_t) {}
};

/// One step of a run: when it was handed out, when its first kernel began, when it was done. A step
/// of a loop's body has one each time.
struct StepEvent {
  std::uint32_t step = 0;
  std::uint64_t start = 0, kern = 0, end = 0;
  std::uint64_t inner = 0;  ///< ticks that steps of its bodies took, which are told by themselves
  std::uint32_t first_piece = 0, piece_count = 0;
};
struct PieceEvent {
  std::uint32_t thread = 0;
  std::uint64_t begin = 0, end = 0;
};
/// All that was seen of a run, in the order in which it ended.
struct RunEvents {
  std::uint64_t begin = 0, end = 0;
  std::vector<StepEvent> steps;
  std::vector<PieceEvent> pieces;

  void clear();
  /// Adds what a watch saw.
  void add(const Watch& watch);
  /// Adds a step that is no kernel's; what came behind event `first_inner` ran in its bodies.
  void add_around(std::uint32_t step, std::uint64_t began, std::uint64_t ended,
                  std::size_t first_inner);
};

}  // namespace tenon
