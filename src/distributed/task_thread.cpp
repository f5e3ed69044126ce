#include "distributed/task_thread.h"

#include <chrono>
#include <utility>

namespace tenon::distributed {

TaskThread::TaskThread() : thread_([this] { work(); }) {}

TaskThread::~TaskThread() {
  {
    const std::scoped_lock lock(mutex_);
    tasks_.clear();
    is_closed_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::uint64_t TaskThread::add(std::function<void()> task) {
  std::uint64_t number = 0;
  {
    const std::scoped_lock lock(mutex_);
    number = ++added_;
    if (failure_) return number;
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
  return number;
}

void TaskThread::wait() { wait(added_); }  // no other thread adds tasks

void TaskThread::wait(std::uint64_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_ || done_ >= number; });
  if (failure_) std::rethrow_exception(failure_);
}

void TaskThread::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return is_closed_ || !tasks_.empty(); });
    if (is_closed_) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    const auto begin = std::chrono::steady_clock::now();
    std::exception_ptr failure;
    try {
      task();
    } catch (...) {
      failure = std::current_exception();
    }
    const double elapsed =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    lock.lock();
    busy_s_ += elapsed;
    ++done_;
    if (failure) {
      failure_ = failure;
      tasks_.clear();
    }
    changed_.notify_all();
  }
}

}  // namespace tenon::distributed
