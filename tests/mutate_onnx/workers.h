#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tenon::testing {

struct WorkerOptions {
  std::uint64_t first = 1, count = 1000;
  unsigned jobs = 2;
  /// of processor time for one job
  double limit_s = 20;
  /// one file per worker for its output
  std::string log_folder;
};

/// Abnormal end of a worker process.
struct Accident {
  std::uint64_t number = 0;
  /// "crashed (signal 11)", "took more than 20 s"
  std::string what;
  /// the worker's output
  std::string log;
};

/// Calls `work(number)` for each number in several worker processes. A process that dies or exceeds
/// its limit is replaced, and reported to `on_accident`. `on_done` receives the line that `work`
/// returns, in any order.
void run_in_workers(const WorkerOptions& options,
                    const std::function<std::string(std::uint64_t)>& work,
                    const std::function<void(std::uint64_t, const std::string&)>& on_done,
                    const std::function<void(const Accident&)>& on_accident);

}  // namespace tenon::testing
