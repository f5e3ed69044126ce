#pragma once

#include "memory/schedules.h"

namespace tenon::memory {

/// The sequence with the few tasks around its peak in the best order there is for them, again and
/// again while the peak falls or fewer steps reach it. Optimal for a sequence of `kWindow` tasks.
inline constexpr std::size_t kWindow = 14;
Sequence with_best_windows(const Tasks& tasks, Sequence sequence);

}  // namespace tenon::memory
