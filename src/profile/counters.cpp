#include "profile/counters.h"

#include "base/error.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tenon::profile {
namespace {

int open_counter(std::uint64_t what, int group) {
  perf_event_attr wanted{};
  wanted.size = sizeof wanted;
  wanted.type = PERF_TYPE_HARDWARE;
  wanted.config = what;
  wanted.exclude_kernel = 1;
  wanted.exclude_hv = 1;
  wanted.read_format = PERF_FORMAT_GROUP;
  return static_cast<int>(syscall(SYS_perf_event_open, &wanted, 0, -1, group, 0));
}

}  // namespace

HardwareCounters::HardwareCounters() {
  constexpr std::pair<std::uint64_t, const char*> kCounters[] = {
      {PERF_COUNT_HW_CPU_CYCLES, "cycles"},
      {PERF_COUNT_HW_INSTRUCTIONS, "instructions"},
      {PERF_COUNT_HW_CACHE_MISSES, "cache misses"}};
  std::string missing;
  int reason = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    // One counter group, so that all count the same time.
    if (k == 0 || is_counting()) files_[k] = open_counter(kCounters[k].first, files_[0]);
    if (files_[k] >= 0) continue;
    if (k == 0 || is_counting()) reason = errno;
    missing += concat(missing.empty() ? "" : ", ", kCounters[k].second);
  }
  if (missing.empty()) return;
  problem_ = concat("hardware counters: ", missing, " are not counted: perf_event_open says '",
                    std::strerror(reason), "'",
                    reason == EACCES || reason == EPERM ? " (kernel.perf_event_paranoid)" : "");
}

HardwareCounters::~HardwareCounters() {
  for (std::size_t k = 3; k > 0; --k) {
    if (files_[k - 1] >= 0) close(files_[k - 1]);
  }
}

Profile::Counters HardwareCounters::read() const {
  // The number of counters, followed by their values in the order of opening.
  std::uint64_t seen[4] = {};
  if (!is_counting() ||
      ::read(files_[0], seen, sizeof seen) < static_cast<ssize_t>(2 * sizeof seen[0]))
    return {};
  double values[3] = {};
  std::size_t next = 1;
  for (std::size_t k = 0; k < 3; ++k) {
    if (files_[k] >= 0 && next <= seen[0]) values[k] = static_cast<double>(seen[next++]);
  }
  return {values[0], values[1], values[2]};
}

}  // namespace tenon::profile
