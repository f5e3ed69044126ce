#pragma once

#include <cstdint>
#include <functional>

namespace tenon::reference {

/// Calls `work(begin, end)` on parts of [0, count) that together cover it, on up to `thread_count`
/// threads (0: as many as the machine has). The first exception is thrown on.
void parallel_for(std::int64_t count, int thread_count,
                  const std::function<void(std::int64_t, std::int64_t)>& work);

}  // namespace tenon::reference
