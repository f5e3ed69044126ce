#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tenon::inline runtime {

/// The time-stamp counter (TSC), synchronized across cores. A read costs a few nanoseconds, cheap
/// enough to time every step.
inline std::uint64_t ticks() { return __builtin_ia32_rdtsc(); }
/// Duration of a tick; measured once, which takes some milliseconds.
double seconds_per_tick();
/// Cost of one read of the clock in ticks; measured once.
std::uint64_t ticks_to_ask();

/// Records start and end of the steps of one run, and the intervals in which each thread worked on
/// them. Recording does not allocate, and reads the clock once for a single-threaded step: more
/// would distort steps of a few nanoseconds.
class Watch {
 public:
  static constexpr bool is_on = true;
  /// A thread's share of a step: from its first item to its last.
  struct Piece {
    std::uint64_t begin = 0, end = 0;
    bool is_there() const { return end != 0; }
  };
  struct Step {
    /// Index in the program's steps.
    std::uint32_t number = 0;
    std::uint64_t start = 0, end = 0;
  };

  /// Sampling: from the next run on, times one step in `stride`, starting after `phase` steps. With
  /// stride 1, the default, every step is timed and starts at the end of the previous one.
  void sample(std::uint32_t stride, std::uint32_t phase);
  static constexpr std::uint32_t kLargestStride = 255;
  /// Allocates space and discards earlier records.
  void prepare(std::size_t step_count, std::size_t thread_count);
  /// The timed steps in execution order.
  std::span<const Step> steps() const { return steps_; }
  /// Pieces of a timed step by thread. The list is empty if the run's own thread executed the step
  /// alone or waited for a device.
  std::span<const Piece> pieces(std::size_t index) const {
    return {pieces_.data() + index * thread_count_, thread_count_};
  }

  // Called by the run.
  void begin_run();
  void end_step(std::size_t number) {
    if (--wait_ == 0) end_wait(number);
  }
  // True if the current step is timed; its threads then record their pieces.
  bool is_sampling() const { return is_sampling_; }
  Piece& piece(std::size_t thread) { return pieces_[steps_.size() * thread_count_ + thread]; }
  // Records step durations that a device reported, consecutive from the start of the run.
  void put(std::span<const double> seconds);

 private:
  void end_wait(std::size_t number) {
    const std::uint64_t now = ticks();
    wait_ = 1;
    if (is_sampling_) {
      steps_.push_back({static_cast<std::uint32_t>(number), last_, now});  // has capacity
      is_sampling_ = stride_ == 1;
      if (!is_sampling_) wait_ = static_cast<std::uint16_t>(stride_ - 1);
    } else {
      is_sampling_ = true;
    }
    last_ = now;
    forget_pieces();
  }
  // Clears the pieces of the next step. Multi-threaded steps are long enough for this cost.
  void forget_pieces() {
    for (std::size_t thread = 0; thread < thread_count_; ++thread) piece(thread) = {};
  }

  // The members fit one cache line.
  std::vector<Step> steps_;
  std::vector<Piece> pieces_;  // by step and thread, including the current step
  std::uint64_t last_ = 0;
  std::uint16_t thread_count_ = 0;
  std::uint16_t wait_ = 1;  // steps until the next clock read
  std::uint8_t stride_ = 1, phase_ = 0;
  bool is_sampling_ = true;
};

/// Null observer without any cost.
struct NoWatch {
  static constexpr bool is_on = false;
  void begin_run() {}
  void end_step(std::size_t) {}
};

/// One execution of a step: enqueue, start of its first kernel, and end. A step in a loop body has
/// one event per iteration.
struct StepEvent {
  std::uint32_t step = 0;
  std::uint64_t start = 0, kern = 0, end = 0;
  /// Ticks of steps in its bodies, which have their own events.
  std::uint64_t inner = 0;
  std::uint32_t first_piece = 0, piece_count = 0;
};
struct PieceEvent {
  std::uint32_t thread = 0;
  std::uint64_t begin = 0, end = 0;
};
/// All events of a run, ordered by their end.
struct RunEvents {
  std::uint64_t begin = 0, end = 0;
  std::vector<StepEvent> steps;
  std::vector<PieceEvent> pieces;

  void clear();
  /// Appends the records of a watch.
  void add(const Watch& watch);
  /// Appends a host step; the events from `first_inner` on ran in its bodies.
  void add_around(std::uint32_t step, std::uint64_t began, std::uint64_t ended,
                  std::size_t first_inner);
};

}  // namespace tenon::inline runtime
