#include "base/ready_order.h"

#include <gtest/gtest.h>

namespace tenon::ready_order_test {
namespace {

using Numbers = std::vector<std::uint32_t>;
using Times = std::vector<std::int64_t>;

ReadyTask task(std::int64_t id, Numbers needs, std::int64_t priority = 0, bool takes_step = true) {
  return {std::move(needs), id, priority, takes_step};
}

TEST(ReadyOrder, BreaksTiesByLargestNumber) {
  const std::vector<ReadyTask> tasks = {task(3, {}), task(9, {}), task(5, {})};
  const ReadyOrder order = ready_order(tasks);
  EXPECT_EQ(order.sequence, (Numbers{1, 2, 0}));
  EXPECT_EQ(order.ready_at, (Times{0, 0, 0}));
}

TEST(ReadyOrder, FinishesAStartedChain) {
  // The chain 0 -> 1 -> 2 runs while 3 waits, although 3 is ready and has the larger number.
  const std::vector<ReadyTask> tasks = {task(20, {}), task(1, {0}), task(2, {1}), task(10, {})};
  const ReadyOrder order = ready_order(tasks);
  EXPECT_EQ(order.sequence, (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(order.ready_at, (Times{0, 1, 2, 0}));
}

TEST(ReadyOrder, LowestPriorityFirst) {
  const std::vector<ReadyTask> tasks = {task(1, {}, 0), task(2, {}, 1), task(0, {}, -1)};
  EXPECT_EQ(ready_order(tasks).sequence, (Numbers{2, 0, 1}));
}

TEST(ReadyOrder, TasksWithoutStepsForwardTheirTime) {
  // Task 2 needs 1, which has no step of its own and needs 0. Task 3 equals 1 without needs.
  const std::vector<ReadyTask> tasks = {task(5, {}), task(1, {0}, 0, false), task(2, {1, 3}),
                                        task(0, {}, 0, false)};
  const ReadyOrder order = ready_order(tasks);
  EXPECT_EQ(order.sequence, (Numbers{0, 2}));
  EXPECT_EQ(order.ready_at[2], 1);
}

TEST(ReadyOrder, CountsRepeatedNeedsOnce) {
  const std::vector<ReadyTask> tasks = {task(0, {}), task(1, {0, 0})};
  EXPECT_EQ(ready_order(tasks).sequence, (Numbers{0, 1}));
}

TEST(ReadyOrder, SkipsCycles) {
  const std::vector<ReadyTask> tasks = {task(0, {}), task(1, {2}), task(2, {1}), task(3, {2})};
  EXPECT_EQ(ready_order(tasks).sequence, (Numbers{0}));
}

TEST(PostOrder, VisitsTheLastNeedFirst) {
  const std::vector<ReadyTask> tasks = {task(0, {}), task(1, {}), task(2, {0, 1})};
  EXPECT_EQ(post_order(tasks, Numbers{2}), (Times{1, 0, 2}));
}

TEST(PostOrder, NumbersOnlyReachableSteps) {
  const std::vector<ReadyTask> tasks = {task(0, {}), task(1, {0}, 0, false), task(2, {1}),
                                        task(3, {})};
  EXPECT_EQ(post_order(tasks, Numbers{2}), (Times{0, -1, 1, -1}));
}

TEST(PostOrder, HandlesDeepGraphs) {
  std::vector<ReadyTask> tasks = {task(0, {})};
  for (std::uint32_t k = 1; k < 200000; ++k) tasks.push_back(task(k, {k - 1}));
  EXPECT_EQ(post_order(tasks, Numbers{199999}).back(), 199999);
  EXPECT_EQ(ready_order(tasks).sequence.size(), tasks.size());
}

}  // namespace
}  // namespace tenon::ready_order_test
