#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace tenon {

/// A thread that does what it is given, one thing after another.
class TaskThread {
 public:
  TaskThread();
  TaskThread(const TaskThread&) = delete;
  ~TaskThread();

  /// Gives the task's number, counted from 1.
  std::uint64_t add(std::function<void()> task);
  /// Waits until all is done. Throws what one of the tasks threw; those behind it are left out.
  void wait();
  /// The same for tasks up to one.
  void wait(std::uint64_t number);
  /// task that was added
  std::uint64_t last() const { return added_; }
  /// asked when nothing is under way
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

}  // namespace tenon
