#include "runtime/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace tenon {
namespace {

struct Counts {
  std::vector<std::atomic<int>> done;
  explicit Counts(std::size_t size) : done(size) {}
  static void run(void* state, std::size_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) ++static_cast<Counts*>(state)->done[static_cast<std::size_t>(k)];
  }
};

TEST(ThreadPool, DoesEveryItemOnce) {
  ThreadPool pool;
  for (const int threads : {1, 2, 3, 7}) {
    for (const std::int64_t count : {0, 1, 2, 17, 1000}) {
      for (const std::int64_t chunk : {1, 3, 64}) {
        Counts counts(static_cast<std::size_t>(count));
        pool.for_each(count, chunk, threads, Counts::run, &counts);
        for (const std::atomic<int>& done : counts.done) EXPECT_EQ(done, 1);
      }
    }
  }
}

TEST(ThreadPool, ServesSeveralCallersAtOnce) {
  ThreadPool pool;
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        Counts counts(40);
        pool.for_each(40, 4, 2, Counts::run, &counts);
        for (const std::atomic<int>& done : counts.done) wrong += done != 1;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, KnowsOfAtLeastOneProcessor) { EXPECT_GE(usable_threads(), 1); }

}  // namespace
}  // namespace tenon
