// Replaces `new` and `delete` of the test program by versions that count, and that fail on request.
#include "unit/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> count{0};
thread_local std::size_t left = 0;  // until one fails
thread_local bool has_failed = false;

void* allocate(std::size_t bytes, std::size_t alignment) {
  count.fetch_add(1, std::memory_order_relaxed);
  if (left > 0 && --left == 0) {
    has_failed = true;
    throw std::bad_alloc();
  }
  void* block = nullptr;
  if (alignment <= alignof(std::max_align_t)) {
    block = std::malloc(bytes == 0 ? 1 : bytes);
  } else if (posix_memalign(&block, alignment, bytes == 0 ? 1 : bytes) != 0) {
    block = nullptr;
  }
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

std::size_t tenon::allocation_count() { return count.load(std::memory_order_relaxed); }

bool tenon::fail_allocation(std::size_t number) {
  const bool had_failed = has_failed;
  left = number;
  has_failed = false;
  return had_failed;
}

// The other overloads call these; but sanitizers provide a nothrow one of their own that does not.
void* operator new(std::size_t bytes) { return allocate(bytes, 1); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return allocate(bytes, 1);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }
