#include "runtime/thread_pool.h"

#include <immintrin.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

namespace tenon {
namespace {

// Longer than the gap between two steps of a network, far shorter than what a user would call idle.
constexpr int kSpins = 20000;

// Processors' worth of time that the control group grants, or a large number where it sets no limit.
double group_limit() {
  std::ifstream unified("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (unified >> quota >> period && quota != "max" && period > 0) return std::stod(quota) / period;
  std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double limit = 0;
  if (quota_file >> limit && period_file >> period && limit > 0 && period > 0) return limit / period;
  return 1e9;
}

template <class T, class Predicate>
void wait_until(std::atomic<T>& value, const Predicate& is_ready) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (is_ready(value.load(std::memory_order_acquire))) return;
    _mm_pause();
  }
  for (T seen = value.load(std::memory_order_acquire); !is_ready(seen);
       seen = value.load(std::memory_order_acquire)) {
    value.wait(seen, std::memory_order_acquire);
  }
}

}  // namespace

int usable_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int count = 1;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) count = CPU_COUNT(&set);
  return std::max(1, std::min(count, static_cast<int>(std::ceil(group_limit()))));
}

ThreadPool& ThreadPool::shared() {
  static ThreadPool pool;
  return pool;
}

ThreadPool::~ThreadPool() {
  is_stopping_.store(true);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::grow(std::size_t worker_count) {
  while (workers_.size() < worker_count) {
    const std::size_t worker = workers_.size();
    workers_.emplace_back([this, worker] { work(worker); });
  }
}

void ThreadPool::take_chunks(std::size_t thread) {
  for (;;) {
    const std::int64_t begin = next_.fetch_add(job_.chunk, std::memory_order_relaxed);
    if (begin >= job_.count) return;
    job_.run(job_.state, thread, begin, std::min(begin + job_.chunk, job_.count));
  }
}

void ThreadPool::work(std::size_t worker) {
  std::uint32_t seen = 0;
  for (;;) {
    wait_until(epoch_, [&](std::uint32_t epoch) { return epoch != seen; });
    if (is_stopping_.load()) return;
    seen = epoch_.load(std::memory_order_acquire);
    if (worker >= active_.load(std::memory_order_acquire)) continue;
    take_chunks(worker + 1);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

void ThreadPool::for_each(std::int64_t count, std::int64_t chunk, int thread_count, Run run,
                          void* state) {
  const std::int64_t chunks = (count + chunk - 1) / chunk;
  const auto helpers = static_cast<std::uint32_t>(
      std::max<std::int64_t>(0, std::min<std::int64_t>(thread_count, chunks) - 1));
  std::unique_lock lock(busy_, std::defer_lock);
  if (helpers == 0 || !lock.try_lock()) {
    if (count > 0) run(state, 0, 0, count);
    return;
  }
  grow(helpers);
  job_ = {run, state, count, chunk};
  next_.store(0, std::memory_order_relaxed);
  active_.store(helpers, std::memory_order_relaxed);
  running_.store(helpers, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  take_chunks(0);
  wait_until(running_, [](std::uint32_t left) { return left == 0; });
}

}  // namespace tenon
