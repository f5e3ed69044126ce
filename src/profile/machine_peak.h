#pragma once

#include <cstdint>
#include <string>

namespace tenon::profile {

/// Roofline peaks of this machine, measured now.
struct MachinePeak {
  /// f32 FMAs, two operations each
  double flops_per_s = 0;
  /// memory reads
  double bytes_per_s = 0;
  /// reads from private caches of the cores
  double cache_bytes_per_s = 0;
  /// of the last-level cache (LLC); data that fits is not read from memory every time
  std::uint64_t cache_bytes = 0;
};

/// Takes about a tenth of a second, and 128 MiB meanwhile.
MachinePeak measure_machine_peak(int thread_count);

/// Returns the machine peak cached for this processor model and thread count; measures and caches
/// it if it is missing. `measures_again` measures in any case. Without a writable cache it is
/// measured each time.
MachinePeak cached_machine_peak(int thread_count, bool measures_again = false);
/// Returns the processor's model name.
std::string processor_name();

/// Returns the roofline lower bound of a network in milliseconds: its arithmetic, or reading the
/// constants that exceed the caches.
double least_ms(const MachinePeak& peak, double flops, std::uint64_t constant_bytes);

}  // namespace tenon::profile
