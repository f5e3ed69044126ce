#include "reference/parallel.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tenon::reference {

void parallel_for(std::int64_t count, int thread_count,
                  const std::function<void(std::int64_t, std::int64_t)>& work) {
  const std::int64_t available =
      thread_count > 0 ? thread_count
                       : static_cast<std::int64_t>(std::thread::hardware_concurrency());
  const std::int64_t parts =
      std::clamp<std::int64_t>(available, 1, std::max<std::int64_t>(count, 1));
  if (parts == 1) {
    work(0, count);
    return;
  }
  std::exception_ptr first_error;
  std::mutex guard;
  const auto run_part = [&](std::int64_t part) {
    try {
      work(count * part / parts, count * (part + 1) / parts);
    } catch (...) {
      const std::lock_guard lock(guard);
      if (!first_error) first_error = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  std::int64_t started = 1;
  try {
    for (; started < parts; ++started) threads.emplace_back(run_part, started);
  } catch (const std::exception&) {  // thread creation failed: this thread does the remaining work
  }
  run_part(0);
  for (; started < parts; ++started) run_part(started);
  for (std::thread& thread : threads) thread.join();
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace tenon::reference
