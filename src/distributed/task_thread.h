#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace tenon::distributed {

/// A thread that executes tasks in order.
class TaskThread {
 public:
  TaskThread();
  TaskThread(const TaskThread&) = delete;
  ~TaskThread();

  /// Enqueues a task. Returns its number, counted from 1.
  std::uint64_t add(std::function<void()> task);
  /// Waits for all tasks. Rethrows an exception of a task, after which later tasks are skipped.
  void wait();
  /// Waits for tasks up to a number.
  void wait(std::uint64_t number);
  /// number of the last task added
  std::uint64_t last() const { return added_; }
  /// valid while no task is running
  double busy_s() const { return busy_s_; }

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::exception_ptr failure_;
  std::uint64_t added_ = 0, done_ = 0;
  bool is_closed_ = false;
  double busy_s_ = 0;
  std::thread thread_;
};

}  // namespace tenon::distributed
