#include "runtime/state_memory.h"

#include "base/error.h"
#include "base/text.h"
#include "runtime/memory.h"

#include <cstring>
#include <new>

namespace tenon::inline runtime {

std::shared_ptr<std::byte> StateMemory::allocate(std::uint64_t bytes) const {
  constexpr std::uint64_t kOfSystem = 256 << 10;  // larger blocks get large pages
  constexpr std::align_val_t kAlignment{64};
  if (bytes < kOfSystem) {
    return {static_cast<std::byte*>(::operator new(bytes + 1, kAlignment)),
            [](std::byte* data) { ::operator delete(data, kAlignment); }};
  }
  const auto block = std::make_shared<Memory>();
  if (!block->allocate(bytes))
    throw Error("no memory for a state", ErrorKind::OutOfMemory).expected(format_bytes(bytes));
  return {block, block->data()};
}

void StateMemory::copy(void* to, const void* from, std::uint64_t bytes) const {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void StateMemory::fill_zeros(void* to, std::uint64_t bytes) const {
  if (bytes > 0) std::memset(to, 0, bytes);
}

bool StateMemory::is_remote(const void*) const { return false; }

}  // namespace tenon::inline runtime
