#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace tenon {

/// Threads that help others: spinning shortly for the next piece of work, then asleep. One pool
/// serves a whole process, so that several callers at once share the machine instead of crowding
/// it.
class ThreadPool {
 public:
  /// Does the items from `begin` up to `end`, on a thread that has the number `thread` in its job.
  /// Does not throw.
  using Run = void (*)(void* state, std::size_t thread, std::int64_t begin, std::int64_t end);

  /// In which direction a thread goes through its share.
  enum class Order : bool { Forward, Backward };

  static ThreadPool& shared();
  /// `capacity`: how many threads, callers among them, are kept busy at once.
  explicit ThreadPool(int capacity);
  ThreadPool(ThreadPool&&) = delete;
  ~ThreadPool();

  /// Makes sure that a caller finds so many helpers. Several who ask get more, up to the capacity.
  /// Where the system gives no more threads it stays at those there are.
  void reserve(int helper_count);

  /// A thread with work to do, counted as busy for as long as this lives.
  class Caller {
   public:
    explicit Caller(ThreadPool& pool);
    Caller(Caller&&) = delete;
    ~Caller();

    /// Calls `run` until all of [0, count) is done, `chunk` items at a time, on at most
    /// `thread_count` threads, this one among them. Beside other callers it gets only helpers that
    /// the capacity leaves; alone it gets those it asks for. Allocates nothing.
    void for_each(std::int64_t count, std::int64_t chunk, int thread_count, Run run, void* state,
                  Order order = Order::Forward);

   private:
    ThreadPool& pool_;
  };

  struct Activity {
    int workers = 0;
    /// of these, how many use no processor until they are called
    int asleep = 0;
    /// how often one of them fell asleep
    std::uint64_t sleeps = 0;
  };
  Activity activity() const;

 private:
  struct Job;
  struct Worker;
  class Places;
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

}  // namespace tenon
