#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tenon::testing {

struct WorkerOptions {
  std::uint64_t first = 1, count = 1000;
  unsigned jobs = 2;
  /// of processor time for one piece of work
  double limit_s = 20;
  /// what workers print goes to a file each
  std::string log_folder;
};

/// How a piece of work ended the process that did it.
struct Accident {
  std::uint64_t number = 0;
  /// "crashed (signal 11)", "took more than 20 s"
  std::string what;
  /// what was printed
  std::string log;
};

/// Does `work(number)` for each number in processes of their own, several at a time. A process that
/// dies or takes too long is replaced by another, and `on_accident` told. `work` gives a line for
/// `on_done`, in any order.
void run_in_workers(const WorkerOptions& options,
                    const std::function<std::string(std::uint64_t)>& work,
                    const std::function<void(std::uint64_t, const std::string&)>& on_done,
                    const std::function<void(const Accident&)>& on_accident);

}  // namespace tenon::testing
