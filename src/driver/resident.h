#pragma once

#include <cstdint>

namespace tenon {

/// The most memory of this process that was resident at once, by the kernel's count, since it began
/// or `begin_resident_peak` was last called.
std::uint64_t resident_peak_bytes();
/// Gives back what the allocator keeps for later, and has the kernel count from now on. Where it
/// does not do that, the peak since the process began stays.
void begin_resident_peak();

}  // namespace tenon
