#include "runtime/watch.h"

#include <algorithm>
#include <chrono>

namespace tenon::inline runtime {
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

std::uint64_t measured_ticks_to_ask() {
  constexpr int kTrials = 200, kReads = 16;
  std::uint64_t least = ~std::uint64_t{0};
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::uint64_t begin = ticks();
    std::uint64_t end = begin;
    for (int k = 0; k < kReads; ++k) end = ticks();
    least = std::min(least, (end - begin) / kReads);
  }
  return std::max<std::uint64_t>(least, 1);
}

}  // namespace

double seconds_per_tick() {
  static const double seconds = measured_seconds_per_tick();
  return seconds;
}

std::uint64_t ticks_to_ask() {
  static const std::uint64_t taken = measured_ticks_to_ask();
  return taken;
}

void Watch::sample(std::uint32_t stride, std::uint32_t phase) {
  stride_ = static_cast<std::uint8_t>(std::clamp(stride, 1U, kLargestStride));
  phase_ = static_cast<std::uint8_t>(phase % stride_);
}

void Watch::prepare(std::size_t step_count, std::size_t thread_count) {
  thread_count_ = static_cast<std::uint16_t>(thread_count);
  steps_.clear();
  steps_.reserve(step_count);
  if (pieces_.size() < (step_count + 1) * thread_count)
    pieces_.resize((step_count + 1) * thread_count);
}

void Watch::begin_run() {
  forget_pieces();
  is_sampling_ = phase_ == 0;
  wait_ = std::max<std::uint8_t>(phase_, 1);
  last_ = ticks();
}

void Watch::put(std::span<const double> seconds) {
  for (std::size_t k = 0; k < seconds.size(); ++k) {
    const auto taken = static_cast<std::uint64_t>(seconds[k] / seconds_per_tick());
    if (taken == 0) continue;
    forget_pieces();
    steps_.push_back({static_cast<std::uint32_t>(k), last_, last_ + taken});
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
  const auto seen = watch.steps();
  steps.reserve(steps.size() + seen.size());
  for (std::size_t k = 0; k < seen.size(); ++k) {
    StepEvent event{seen[k].number, seen[k].start, seen[k].end, seen[k].end};
    event.first_piece = static_cast<std::uint32_t>(pieces.size());
    const auto threads = watch.pieces(k);
    for (std::size_t thread = 0; thread < threads.size(); ++thread) {
      if (!threads[thread].is_there()) continue;
      pieces.push_back(
          {static_cast<std::uint32_t>(thread), threads[thread].begin, threads[thread].end});
      event.kern = std::min(event.kern, threads[thread].begin);
    }
    if (event.first_piece == pieces.size()) {
      // A step on the run's own thread, which started after one read of the clock.
      event.kern = event.start + std::min(ticks_to_ask(), (event.end - event.start) / 2);
      pieces.push_back({0, event.kern, event.end});
    }
    event.piece_count = static_cast<std::uint32_t>(pieces.size()) - event.first_piece;
    steps.push_back(event);
  }
}

}  // namespace tenon::inline runtime
