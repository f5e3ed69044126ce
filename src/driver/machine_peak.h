#pragma once

#include <cstdint>
#include <string>

namespace tenon {

/// What this machine can do at most, measured now: the ceilings that a network's time is compared
/// with.
struct MachinePeak {
  /// f32 multiply-adds, two operations each
  double flops_per_s = 0;
  /// read from memory
  double bytes_per_s = 0;
  /// read from caches that each core has for itself
  double cache_bytes_per_s = 0;
  /// of the last level; what fits is not read from memory every time
  std::uint64_t cache_bytes = 0;
};

/// Takes about a tenth of a second, and 128 MiB while it lasts.
MachinePeak measure_machine_peak(int thread_count);

/// What was measured on this kind of processor before, with so many threads; measured now and kept
/// where nothing was. `anew` measures in any case. What cannot be kept is measured each time.
MachinePeak known_machine_peak(int thread_count, bool anew = false);
/// The processor's own name.
std::string processor_name();

/// The least milliseconds that a network's arithmetic takes, and reading those of its constants
/// that no cache holds.
double least_ms(const MachinePeak& peak, double flops, std::uint64_t constant_bytes);

}  // namespace tenon
