#include "runtime/watch.h"

#include <algorithm>
#include <chrono>

namespace tenon {
namespace {

double measured_seconds_per_tick() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLong(5);
  const auto begin = Clock::now();
  const std::uint64_t first = ticks();
  while (Clock::now() - begin < kLong) {
  }
  const std::uint64_t last = ticks();
  return std::chrono::duration<double>(Clock::now() - begin).count() /
         static_cast<double>(last - first);
}

}  // namespace

double seconds_per_tick() {
  static const double seconds = measured_seconds_per_tick();
  return seconds;
}

void Watch::prepare(std::size_t step_count, std::size_t thread_count, std::size_t first_step) {
  first_ = first_step;
  thread_count_ = thread_count;
  steps_.assign(step_count, {});
  pieces_.assign(step_count * thread_count, {});
}

void Watch::put(std::span<const double> seconds) {
  for (std::size_t k = 0; k < steps_.size() && first_ + k < seconds.size(); ++k) {
    const auto taken = static_cast<std::uint64_t>(seconds[first_ + k] / seconds_per_tick());
    if (taken == 0) continue;
    steps_[k] = {last_, last_ + taken};
    last_ += taken;
  }
}

void RunEvents::clear() {
  begin = end = 0;
  steps.clear();
  pieces.clear();
}

void RunEvents::add_around(std::uint32_t step, std::uint64_t began, std::uint64_t ended,
                           std::size_t first_inner) {
  StepEvent event{step, began, began, ended};
  for (std::size_t k = first_inner; k < steps.size(); ++k) {
    event.inner += steps[k].end - steps[k].start - steps[k].inner;
  }
  event.first_piece = static_cast<std::uint32_t>(pieces.size());
  event.piece_count = 1;
  pieces.push_back({0, began, ended});
  steps.push_back(event);
}

void RunEvents::add(const Watch& watch) {
  for (std::size_t k = watch.first_step(); k < watch.first_step() + watch.step_count(); ++k) {
    const Watch::Step& seen = watch.step(k);
    if (!seen.is_there()) continue;
    StepEvent event{static_cast<std::uint32_t>(k), seen.start, seen.end, seen.end};
    event.first_piece = static_cast<std::uint32_t>(pieces.size());
    const auto threads = watch.pieces(k);
    for (std::size_t thread = 0; thread < threads.size(); ++thread) {
      if (!threads[thread].is_there()) continue;
      pieces.push_back(
          {static_cast<std::uint32_t>(thread), threads[thread].begin, threads[thread].end});
      event.kern = std::min(event.kern, threads[thread].begin);
    }
    if (event.first_piece == pieces.size()) event.kern = seen.start;
    event.piece_count = static_cast<std::uint32_t>(pieces.size()) - event.first_piece;
    steps.push_back(event);
  }
}

}  // namespace tenon
