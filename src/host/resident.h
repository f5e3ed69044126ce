#pragma once

#include <cstdint>

namespace tenon::inline host {

/// Returns the peak resident set size of this process, by the kernel's count, since its start or
/// the last call of `begin_resident_peak`.
std::uint64_t resident_peak_bytes();
/// Returns free memory of the allocator to the system and resets the kernel's peak. Without kernel
/// support the peak since the start of the process remains.
void begin_resident_peak();

}  // namespace tenon::inline host
