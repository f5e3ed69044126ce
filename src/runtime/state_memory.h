#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tenon::inline runtime {

/// Memory in which states live between runs: of the host by default, or of a device.
class StateMemory {
 public:
  virtual ~StateMemory() = default;

  /// Throws Error (OutOfMemory). The memory is aligned for kernels, and never null.
  virtual std::shared_ptr<std::byte> allocate(std::uint64_t bytes) const;
  /// Copies within this memory, or between it and the host.
  virtual void copy(void* to, const void* from, std::uint64_t bytes) const;
  virtual void fill_zeros(void* to, std::uint64_t bytes) const;
  /// True for an address that the host cannot access.
  virtual bool is_remote(const void* address) const;
};

}  // namespace tenon::inline runtime
