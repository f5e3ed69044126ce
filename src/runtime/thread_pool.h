#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace tenon {

/// How many threads this process may keep busy: what its affinity and its control group allow.
int usable_threads();

/// Threads that wait for work: spinning shortly, then asleep. One pool serves a whole process; when
/// two callers want it at once the second works alone, so that the machine is never oversubscribed.
class ThreadPool {
 public:
  static ThreadPool& shared();
  ThreadPool() = default;
  ThreadPool(ThreadPool&&) = delete;
  ~ThreadPool();

  /// Calls `run(state, begin, end)` until all of [0, count) is done, `chunk` items at a time, on at
  /// most `thread_count` threads, this one among them. `run` does not throw.
  using Run = void (*)(void* state, std::size_t thread, std::int64_t begin, std::int64_t end);
  void for_each(std::int64_t count, std::int64_t chunk, int thread_count, Run run, void* state);

 private:
  struct Job {
    Run run = nullptr;
    void* state = nullptr;
    std::int64_t count = 0, chunk = 1;
  };
  void grow(std::size_t worker_count);
  void work(std::size_t worker);
  void take_chunks(std::size_t thread);

  std::mutex busy_;
  Job job_;
  std::vector<std::thread> workers_;
  alignas(64) std::atomic<std::int64_t> next_{0};
  alignas(64) std::atomic<std::uint32_t> epoch_{0};    // goes up with every job
  alignas(64) std::atomic<std::uint32_t> active_{0};   // workers that take part in the job
  alignas(64) std::atomic<std::uint32_t> running_{0};  // and have not finished it
  std::atomic<bool> is_stopping_{false};
};

}  // namespace tenon
