#pragma once

#include <cstdint>
#include <functional>

namespace tenon::reference {

/// Parallel for: calls `work(begin, end)` on ranges that partition [0, count), on up to
/// `thread_count` threads (0: all cores). Rethrows the first exception.
void parallel_for(std::int64_t count, int thread_count,
                  const std::function<void(std::int64_t, std::int64_t)>& work);

}  // namespace tenon::reference
