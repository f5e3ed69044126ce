#include "driver/profile/counters.h"

#include "base/error.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tenon {
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
  group_ = open_counter(PERF_COUNT_HW_CPU_CYCLES, -1);
  if (group_ >= 0) {
    members_[0] = open_counter(PERF_COUNT_HW_INSTRUCTIONS, group_);
    members_[1] = open_counter(PERF_COUNT_HW_CACHE_MISSES, group_);
  }
  if (group_ < 0 || members_[0] < 0 || members_[1] < 0) {
    problem_ = concat("hardware counters: perf_event_open says '", std::strerror(errno), "'",
                      errno == EACCES || errno == EPERM ? " (kernel.perf_event_paranoid)" : "");
  }
}

HardwareCounters::~HardwareCounters() {
  for (const int file : {members_[0], members_[1], group_}) {
    if (file >= 0) close(file);
  }
}

Profile::Counters HardwareCounters::read() const {
  struct {
    std::uint64_t count = 0, values[3] = {};
  } seen;
  if (!problem_.empty() || ::read(group_, &seen, sizeof seen) != static_cast<ssize_t>(sizeof seen))
    return {};
  return {static_cast<double>(seen.values[0]), static_cast<double>(seen.values[1]),
          static_cast<double>(seen.values[2])};
}

}  // namespace tenon
