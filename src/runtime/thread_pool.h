#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace tenon::inline runtime {

/// Worker threads that spin briefly for the next job, then sleep. One pool per process, so that
/// concurrent callers share the machine without oversubscription.
class ThreadPool {
 public:
  /// Processes the items from `begin` up to `end`; `thread` is the thread's index in the job. Must
  /// not throw.
  using Run = void (*)(void* state, std::size_t thread, std::int64_t begin, std::int64_t end);

  /// Direction in which a thread iterates over its share.
  enum class Order : bool { Forward, Backward };

  static ThreadPool& shared();
  /// `capacity`: maximum number of busy threads, including callers.
  explicit ThreadPool(int capacity);
  ThreadPool(ThreadPool&&) = delete;
  ~ThreadPool();

  /// Creates workers up to this number per caller, limited by the capacity. If the system refuses
  /// threads, the pool stays smaller.
  void reserve(int helper_count);

  /// A thread with work, counted as busy during the lifetime of this object.
  class Caller {
   public:
    explicit Caller(ThreadPool& pool);
    Caller(Caller&&) = delete;
    ~Caller();

    /// Calls `run` until all items of [0, count) are done, in chunks of `chunk`, on at most
    /// `thread_count` threads including the caller. With other callers it gets only helpers within
    /// the capacity; alone it gets all that it requests. Does not allocate.
    void for_each(std::int64_t count, std::int64_t chunk, int thread_count, Run run, void* state,
                  Order order = Order::Forward);

   private:
    ThreadPool& pool_;
  };

  struct Activity {
    int workers = 0;
    /// Workers that sleep until they are called.
    int asleep = 0;
    /// Number of times that a worker fell asleep.
    std::uint64_t sleeps = 0;
  };
  Activity activity() const;

 private:
  struct Job;
  struct Worker;
  class WorkerSlots;
  static constexpr std::size_t kMaxWorkers = 255;

  int take_helpers(int wanted);
  void work(Worker& worker);

  const int capacity_;
  std::mutex growing_;
  std::array<std::unique_ptr<Worker>, kMaxWorkers> workers_;
  std::atomic<std::size_t> worker_count_{0};
  alignas(64) std::atomic<int> callers_{0};
  std::atomic<int> busy_{0};  // callers and their helpers
  alignas(64) std::atomic<int> asleep_{0};
  std::atomic<std::uint64_t> sleeps_{0};
};

}  // namespace tenon::inline runtime
