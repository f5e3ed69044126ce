#pragma once

#include "memory/schedules.h"

namespace tenon::memory {

/// Optimally reorders the `kWindow` tasks around the peak, repeatedly while the peak or the number
/// of steps that reach it decreases. Optimal for sequences of at most `kWindow` tasks.
inline constexpr std::size_t kWindow = 14;
Sequence with_best_windows(const Tasks& tasks, Sequence sequence);

}  // namespace tenon::memory
