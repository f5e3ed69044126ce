#pragma once

#include "base/communicator.h"

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

namespace tenon::distributed {

/// Shared memory between processes of one machine and user: own allocations, and mappings of those
/// of other processes. Anonymous, so that it disappears with the processes however they end.
class VisibleMemory {
 public:
  VisibleMemory();
  ~VisibleMemory();

  /// Returns zeroed memory; null if the system does not support it.
  std::shared_ptr<std::byte> allocate(std::size_t bytes);
  /// Returns a handle for other processes; region 0 if the bytes are not visible.
  MemoryWindow window_of(std::span<const std::byte> bytes) const;
  /// Maps a window of another process; empty if that is not permitted.
  std::span<const std::byte> view(pid_t process, const MemoryWindow& window);

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with allocations, which may outlive the object
};

}  // namespace tenon::distributed
