#pragma once

#include "runtime/memory.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace tenon::inline host {

/// Allocator for values of dynamic size. Blocks are reused when unreferenced; blocks that an entire
/// run did not use are returned to the system.
class MemoryPool {
 public:
  /// Returns a block of at least `bytes`, kept alive by the value in it. Throws Error
  /// (OutOfMemory), naming the value.
  std::shared_ptr<const Memory> take(std::uint64_t bytes, const std::string& value_name);
  /// Called at the end of a run.
  void end_run();
  /// Bytes allocated from the system.
  std::uint64_t bytes() const;

 private:
  struct Block {
    std::shared_ptr<const Memory> memory;
    bool is_wanted = true;  // used in this run
  };
  std::vector<Block> blocks_;
};

}  // namespace tenon::inline host
