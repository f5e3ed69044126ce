#include "planning/swap_link.h"

#include "base/error.h"
#include "profile/device_peak.h"
#include "runtime/device.h"
#include "runtime/swap.h"
#include "target/gpu_facts.h"

namespace tenon::planning {
namespace {

// Smaller copies are not worth a system call.
constexpr std::uint64_t kLeastSwapped = 64 << 10;
constexpr double kCallSeconds = 5e-5;

double device_link_bytes_per_s() {
  try {
    return profile::cached_link_bytes_per_s();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Device) throw;
    return kGpuLinkBytesPerS;
  }
}

}  // namespace

memory::Link swap_link(const Program& program) {
  if (is_for_device(program))
    return {"the host's memory", kGpuLinkShare * device_link_bytes_per_s(), kGpuCopySeconds};
  return {"a file", measured_swap_bytes_per_s(), kCallSeconds};
}

void allow_swaps(memory::Problem& problem, memory::Link link) {
  problem.link = std::move(link);
  for (memory::PlannedValue& value : problem.values)
    value.may_swap = value.may_swap && value.bytes >= kLeastSwapped;
}

}  // namespace tenon::planning
