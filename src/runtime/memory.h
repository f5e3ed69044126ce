#pragma once

#include "base/error.h"
#include "program/program.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace tenon {

/// Memory that a run works in, from the system and back to it.
class Memory {
 public:
  Memory() = default;
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();

  /// Whether the system gives so many bytes; what was held before is given back first.
  bool allocate(std::uint64_t bytes);
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

/// Gives back the large pages that lie inside bytes of a mapped file. They come back when they are
/// read, in small pages: from now on a part here and there is wanted.
void let_go(const std::byte* begin, std::uint64_t bytes);

/// What to say when there is no memory for the arena: how much it needs, the step at which most is
/// alive, and the largest buffers there. `buffer_bytes`: by buffer of the program.
Error no_arena(const Program& program, std::span<const std::uint64_t> buffer_bytes,
               std::uint64_t arena_bytes);
/// The same for what kernels need for themselves: the step that wants most.
Error no_scratch(const Program& program, std::size_t step, std::uint64_t bytes, int thread_count);

}  // namespace tenon
