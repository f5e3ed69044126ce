#pragma once

#include "base/communicator.h"

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

namespace tenon {

/// Memory that other processes of this machine and user can map, and theirs that this one has
/// mapped. It has no name: whatever way the processes end, nothing is left behind.
class VisibleMemory {
 public:
  VisibleMemory();
  ~VisibleMemory();

  /// Zeros. Null where the system has no such memory.
  std::shared_ptr<std::byte> allocate(std::size_t bytes);
  /// How another process finds bytes of this one; region 0 where it cannot.
  MemoryWindow window_of(std::span<const std::byte> bytes) const;
  /// What another process shows; empty where it may not be mapped.
  std::span<const std::byte> view(pid_t process, const MemoryWindow& window);

 private:
  struct State;
  std::shared_ptr<State> state_;  // what was allocated may outlive it
};

}  // namespace tenon
