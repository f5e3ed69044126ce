#include "runtime/watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace tenon::watch_test {
namespace {

TEST(Watch, ConvertsTicksToTime) {
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t first = ticks();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::uint64_t last = ticks();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_NEAR(static_cast<double>(last - first) * seconds_per_tick(), seconds, 0.1 * seconds);
}

// Executed steps are consecutive; a skipped step has no event. A step's kernel begins with its
// first work item.
TEST(Watch, RecordsExecutedSteps) {
  Watch watch;
  watch.prepare(3, 2);
  watch.begin_run();
  const std::uint64_t first = ticks();
  watch.piece(1) = {first, ticks()};
  watch.end_step(4);
  watch.end_step(6);
  RunEvents events;
  events.add(watch);
  ASSERT_EQ(events.steps.size(), 2);
  EXPECT_EQ(events.steps[0].step, 4);
  EXPECT_EQ(events.steps[1].step, 6);
  EXPECT_EQ(events.steps[1].start, events.steps[0].end);
  EXPECT_EQ(events.steps[0].kern, first);
  ASSERT_EQ(events.pieces.size(), 2);
  EXPECT_EQ(events.pieces[0].thread, 1);
  EXPECT_EQ(events.pieces[0].begin, first);
  EXPECT_LE(events.pieces[0].end, events.steps[0].end);
  // The second step ran on the caller's thread alone.
  EXPECT_EQ(events.pieces[1].thread, 0);
  EXPECT_EQ(events.pieces[1].begin, events.steps[1].kern);
  EXPECT_EQ(events.pieces[1].end, events.steps[1].end);
  EXPECT_LT(events.steps[1].kern, events.steps[1].end);
}

// A sampling rate of three times one step in three per run, other steps in each run, and every step
// once in three runs.
TEST(Watch, SamplesSteps) {
  constexpr std::size_t kSteps = 11, kStride = 3;
  Watch watch;
  std::vector<int> seen(kSteps);
  for (std::uint32_t run = 0; run < kStride; ++run) {
    watch.sample(kStride, run);
    watch.prepare(kSteps, 1);
    watch.begin_run();
    for (std::size_t k = 0; k < kSteps; ++k) {
      EXPECT_EQ(watch.is_sampling(), k % kStride == run);
      watch.end_step(k);
    }
    for (const Watch::Step& step : watch.steps()) {
      EXPECT_EQ(step.number % kStride, run);
      EXPECT_LT(step.start, step.end);
      ++seen[step.number];
    }
  }
  EXPECT_EQ(seen, std::vector<int>(kSteps, 1));
}

// A device reports the durations of its steps.
TEST(Watch, UsesDeviceTimes) {
  Watch watch;
  watch.prepare(3, 1);
  watch.begin_run();
  watch.put(std::vector<double>{1e-3, 0, 2e-3});
  RunEvents events;
  events.add(watch);
  ASSERT_EQ(events.steps.size(), 2);
  EXPECT_NEAR(static_cast<double>(events.steps[1].end - events.steps[1].start) * seconds_per_tick(),
              2e-3, 1e-8);
  EXPECT_EQ(events.steps[1].start, events.steps[0].end);
  ASSERT_EQ(events.pieces.size(), 2);  // the thread that waits for it
  EXPECT_EQ(events.pieces[1].end, events.steps[1].end);
}

}  // namespace
}  // namespace tenon::watch_test
