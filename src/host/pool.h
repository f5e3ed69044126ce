#pragma once

#include "runtime/memory.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace tenon {

/// Memory for values whose size is known only in the run. A block is used again as soon as nobody
/// holds it; what a whole run had no use for goes back to the system.
class Pool {
 public:
  /// A block of at least so many bytes, shared with whoever holds the value in it. Throws Error
  /// (OutOfMemory), naming the value.
  std::shared_ptr<const Memory> take(std::uint64_t bytes, const std::string& value_name);
  /// Called when a run is over.
  void end_run();
  /// What it has from the system.
  std::uint64_t bytes() const;

 private:
  struct Block {
    std::shared_ptr<const Memory> memory;
    bool is_wanted = true;  // in this run
  };
  std::vector<Block> blocks_;
};

}  // namespace tenon
