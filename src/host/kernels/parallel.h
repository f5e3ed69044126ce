#pragma once

#include "host/kernels/kernel.h"
#include "runtime/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>

namespace tenon::inline host {

/// Parallel for: calls `work(thread, begin, end)` on ranges of [0, count), `chunk` items at a time,
/// on the shared thread pool; `thread` is below `thread_count`. Rethrows the first exception.
template <class Work>
void for_each_part(std::int64_t count, std::int64_t chunk, int thread_count, Work&& work) {
  if (count <= 0) return;
  if (thread_count <= 1 || count <= chunk) return work(std::size_t{0}, std::int64_t{0}, count);
  struct State {
    Work& work;
    std::exception_ptr problem;
    std::atomic_flag has_problem;
  } state{work, nullptr, {}};
  const auto run = [](void* opaque, std::size_t thread, std::int64_t begin, std::int64_t end) {
    auto& shared = *static_cast<State*>(opaque);
    try {
      shared.work(thread, begin, end);
    } catch (...) {
      if (!shared.has_problem.test_and_set()) shared.problem = std::current_exception();
    }
  };
  ThreadPool::Caller(ThreadPool::shared()).for_each(count, chunk, thread_count, run, &state);
  if (state.problem) std::rethrow_exception(state.problem);
}

/// Uninitialized scratch arrays of `count` items, one per thread of a call.
template <class T>
class PerThread {
 public:
  PerThread(const HostCall& call, std::int64_t count)
      : stride_((static_cast<std::uint64_t>(count) * sizeof(T) + 127) / 128 * 128),
        memory_(call.scratch(stride_ * static_cast<std::uint64_t>(call.thread_count))) {}
  T* operator[](std::size_t thread) const {
    return reinterpret_cast<T*>(memory_ + thread * stride_);
  }

 private:
  std::uint64_t stride_;
  std::byte* memory_;
};

}  // namespace tenon::inline host
