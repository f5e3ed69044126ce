#pragma once

#include <cstdint>

namespace tenon {

/// What this machine can do at most, measured now: the ceilings that a network's time is compared
/// with.
struct MachinePeak {
  double flops_per_s = 0;  ///< f32 multiply-adds, two operations each
  double bytes_per_s = 0;  ///< read from memory
  std::uint64_t cache_bytes =
      0;  ///< of the last level; what fits is not read from memory every time
};

/// Takes about a tenth of a second, and 128 MiB while it lasts.
MachinePeak measure_machine_peak(int thread_count);

/// The least milliseconds that a network's arithmetic takes, and reading those of its constants
/// that no cache holds.
double least_ms(const MachinePeak& peak, double flops, std::uint64_t constant_bytes);

}  // namespace tenon
