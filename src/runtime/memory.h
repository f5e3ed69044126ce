#pragma once

#include "base/error.h"
#include "program/program.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace tenon::inline runtime {

/// Memory from the operating system, for arenas and scratch.
class Memory {
 public:
  Memory() = default;
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();

  /// Returns false if the system lacks memory. Frees the previous memory first.
  bool allocate(std::uint64_t bytes);
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

/// Releases the huge pages inside a range of a mapped file. Later accesses reload single small
/// pages.
void release(const std::byte* begin, std::uint64_t bytes);

/// Returns the error for a failed arena allocation: required size, the step with the peak, and the
/// largest buffers alive there. `buffer_bytes` is indexed by buffer.
Error no_arena(const Program& program, std::span<const std::uint64_t> buffer_bytes,
               std::uint64_t arena_bytes);
/// Returns the error for a failed scratch allocation, with the step that requires most.
Error no_scratch(const Program& program, std::size_t step, std::uint64_t bytes, int thread_count);

}  // namespace tenon::inline runtime
