#include "runtime/thread_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <latch>
#include <thread>
#include <vector>

namespace tenon::thread_pool_test {
namespace {

struct Counts {
  std::vector<std::atomic<int>> done;
  std::atomic<std::size_t> highest_thread{0};
  explicit Counts(std::size_t size) : done(size) {}
  static void run(void* state, std::size_t thread, std::int64_t begin, std::int64_t end) {
    auto& counts = *static_cast<Counts*>(state);
    for (std::int64_t k = begin; k < end; ++k) ++counts.done[static_cast<std::size_t>(k)];
    for (std::size_t seen = counts.highest_thread;
         seen < thread && !counts.highest_thread.compare_exchange_weak(seen, thread);) {
    }
  }
  int wrong() const {
    int count = 0;
    for (const std::atomic<int>& items : done) count += items != 1;
    return count;
  }
};

// Polls until the condition holds, without a timeout: the awaited event must happen.
template <class Condition>
bool comes_true(const Condition& condition) {
  for (int k = 0; k < 30000 && !condition(); ++k)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return condition();
}

TEST(ThreadPool, RunsEveryItemOnce) {
  ThreadPool pool(4);
  pool.reserve(6);
  ThreadPool::Caller caller(pool);
  for (const int threads : {1, 2, 3, 7}) {
    for (const std::int64_t count : {0, 1, 2, 17, 1000}) {
      for (const std::int64_t chunk : {1, 3, 64}) {
        for (const ThreadPool::Order order :
             {ThreadPool::Order::Forward, ThreadPool::Order::Backward}) {
          Counts counts(static_cast<std::size_t>(count));
          caller.for_each(count, chunk, threads, Counts::run, &counts, order);
          EXPECT_EQ(counts.wrong(), 0);
          EXPECT_LT(counts.highest_thread, static_cast<std::size_t>(threads));
        }
      }
    }
  }
}

// Two threads that wait for each other prevent work stealing.
TEST(ThreadPool, RunsSharesInTheRequestedOrder) {
  ThreadPool pool(2);
  pool.reserve(1);
  ThreadPool::Caller caller(pool);
  struct Seen {
    std::atomic<int> begun{0};
    std::array<std::vector<std::int64_t>, 2> chunks;
    static void run(void* state, std::size_t thread, std::int64_t begin, std::int64_t) {
      auto& seen = *static_cast<Seen*>(state);
      seen.chunks[thread].push_back(begin);
      const int turn = static_cast<int>(seen.chunks[thread].size()) * 2;
      ++seen.begun;
      while (seen.begun < turn) std::this_thread::yield();
    }
  };
  for (const ThreadPool::Order order : {ThreadPool::Order::Forward, ThreadPool::Order::Backward}) {
    Seen seen;
    caller.for_each(24, 3, 2, Seen::run, &seen, order);
    const bool is_forward = order == ThreadPool::Order::Forward;
    EXPECT_EQ(seen.chunks[0], is_forward ? std::vector<std::int64_t>({0, 3, 6, 9})
                                         : std::vector<std::int64_t>({9, 6, 3, 0}));
    EXPECT_EQ(seen.chunks[1], is_forward ? std::vector<std::int64_t>({12, 15, 18, 21})
                                         : std::vector<std::int64_t>({21, 18, 15, 12}));
  }
}

TEST(ThreadPool, ServesConcurrentCallers) {
  for (const int capacity : {2, 6}) {
    ThreadPool pool(capacity);
    pool.reserve(3);
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int k = 0; k < 4; ++k) {
      threads.emplace_back([&] {
        for (int round = 0; round < 300; ++round) {
          ThreadPool::Caller caller(pool);
          Counts counts(40);
          caller.for_each(40, 4, 2, Counts::run, &counts);
          caller.for_each(0, 1, 2, Counts::run, &counts);
          wrong += counts.wrong() + (counts.highest_thread > 1);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
}

// Items that end only when the given number of threads run them concurrently: fewer helpers hang
// the test.
struct Meeting {
  std::latch everybody;
  explicit Meeting(int threads) : everybody(threads) {}
  static void run(void* state, std::size_t, std::int64_t begin, std::int64_t end) {
    for (; begin < end; ++begin) static_cast<Meeting*>(state)->everybody.arrive_and_wait();
  }
};

TEST(ThreadPool, SingleCallerGetsAllThreads) {
  ThreadPool pool(2);  // also more than the number of processors
  pool.reserve(4);
  ThreadPool::Caller caller(pool);
  Meeting meeting(5);
  caller.for_each(5, 1, 5, Meeting::run, &meeting);
  EXPECT_EQ(pool.activity().workers, 4);
}

TEST(ThreadPool, ConcurrentCallersShareTheCapacity) {
  ThreadPool pool(3);
  pool.reserve(2);
  ThreadPool::Caller one(pool), two(pool);
  Meeting meeting(2);
  one.for_each(2, 1, 8, Meeting::run, &meeting);  // the third thread is free
  Counts counts(64);
  ThreadPool::Caller three(pool);  // now all are busy
  for (ThreadPool::Caller* caller : {&one, &two, &three})
    caller->for_each(64, 1, 8, Counts::run, &counts);
  EXPECT_EQ(counts.highest_thread, 0u);
  for (const std::atomic<int>& items : counts.done) EXPECT_EQ(items, 3);
}

TEST(ThreadPool, CreatesHelpersUpToTheCapacity) {
  ThreadPool pool(4);
  for (int k = 0; k < 9; ++k) pool.reserve(1);
  EXPECT_EQ(pool.activity().workers, 3);
  pool.reserve(0);
  EXPECT_EQ(pool.activity().workers, 3);
}

TEST(ThreadPool, SleepsWhenIdleAndWakesForWork) {
  ThreadPool pool(3);
  pool.reserve(2);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(comes_true([&] { return pool.activity().asleep == 2; }));
    const std::uint64_t sleeps = pool.activity().sleeps;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(pool.activity().sleeps, sleeps);  // idle threads did not wake
    EXPECT_EQ(pool.activity().asleep, 2);
    ThreadPool::Caller caller(pool);
    Meeting meeting(3);
    caller.for_each(3, 1, 3, Meeting::run, &meeting);
  }
}

}  // namespace
}  // namespace tenon::thread_pool_test
