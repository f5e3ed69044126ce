#include "driver/parallel/task_thread.h"

#include <chrono>
#include <utility>

namespace tenon {

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

void TaskThread::add(std::function<void()> task) {
  {
    const std::scoped_lock lock(mutex_);
    if (failure_) return;
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void TaskThread::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_ || (tasks_.empty() && !is_busy_); });
  if (failure_) std::rethrow_exception(failure_);
}

void TaskThread::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return is_closed_ || !tasks_.empty(); });
    if (is_closed_) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    is_busy_ = true;
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
    is_busy_ = false;
    if (failure) {
      failure_ = failure;
      tasks_.clear();
    }
    changed_.notify_all();
  }
}

}  // namespace tenon
