#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tenon {

/// The processor's own clock, the same on all cores: asking it costs a few nanoseconds, so that
/// every step of a run can be watched.
inline std::uint64_t ticks() { return __builtin_ia32_rdtsc(); }
/// How long one tick is; measured once, which takes some milliseconds.
double seconds_per_tick();
/// How many ticks go by while the clock is asked; measured once.
std::uint64_t ticks_to_ask();

/// When the steps of one run of a program's kernels began and ended, and when each thread worked at
/// them. The run fills it without allocating, and asks the clock once for a step that one thread
/// does alone: more would be felt where steps take some nanoseconds each.
class Watch {
 public:
  static constexpr bool is_on = true;
  /// What one thread did of a step: from its first item to its last.
  struct Piece {
    std::uint64_t begin = 0, end = 0;
    bool is_there() const { return end != 0; }
  };
  struct Step {
    /// of the program's steps
    std::uint32_t number = 0;
    std::uint64_t start = 0, end = 0;
  };

  /// From the next run on only one step in `stride` is timed, first the one that `phase` others
  /// ran before. With 1, as at first, all are, and each starts where the one before ended.
  void sample(std::uint32_t stride, std::uint32_t phase);
  static constexpr std::uint32_t kLargestStride = 255;
  /// Makes room. What was seen before is forgotten.
  void prepare(std::size_t step_count, std::size_t thread_count);
  /// The steps that were timed, in the order they ran.
  std::span<const Step> steps() const { return steps_; }
  /// Of one of those, by thread. None is there where the run's own thread did the step alone, or
  /// waited for a device that did.
  std::span<const Piece> pieces(std::size_t index) const {
    return {pieces_.data() + index * thread_count_, thread_count_};
  }

  // Called by the run.
  void begin_run();
  void end_step(std::size_t number) {
    if (--wait_ == 0) end_wait(number);
  }
  // Whether the step that runs is timed; then threads that share it say what they do of it.
  bool is_looking() const { return is_looking_; }
  Piece& piece(std::size_t thread) { return pieces_[steps_.size() * thread_count_ + thread]; }
  // What a device tells: how long each step took, one after another from the run's beginning.
  void put(std::span<const double> seconds);

 private:
  void end_wait(std::size_t number) {
    const std::uint64_t now = ticks();
    wait_ = 1;
    if (is_looking_) {
      steps_.push_back({static_cast<std::uint32_t>(number), last_, now});  // there is room
      is_looking_ = stride_ == 1;
      if (!is_looking_) wait_ = static_cast<std::uint16_t>(stride_ - 1);
    } else {
      is_looking_ = true;
    }
    last_ = now;
    forget_pieces();
  }
  // Of the step that comes. Those that several threads work at are long enough for this.
  void forget_pieces() {
    for (std::size_t thread = 0; thread < thread_count_; ++thread) piece(thread) = {};
  }

  // All of it is a line of the cache.
  std::vector<Step> steps_;
  std::vector<Piece> pieces_;  // by step and thread; one more step than there are
  std::uint64_t last_ = 0;
  std::uint16_t thread_count_ = 0;
  std::uint16_t wait_ = 1;  // ends of steps until the clock is asked again
  std::uint8_t stride_ = 1, phase_ = 0;
  bool is_looking_ = true;
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
  /// ticks that steps of its bodies took, which are told by themselves
  std::uint64_t inner = 0;
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
