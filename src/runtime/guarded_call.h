#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tenon {

/// Which end of a buffer touches memory that nobody may read or write.
enum class GuardedEnd : std::uint8_t { First, Last };
/// What the environment variable TENON_GUARD asks for: `first`, `last`, or nothing.
std::optional<GuardedEnd> guarded_end();

/// Pages that nobody may touch from now on; both are multiples of a page.
void forbid(std::byte* begin, std::uint64_t bytes);
/// a page, on every machine
inline constexpr std::uint64_t kGuardBytes = 65536;

/// For finding kernels that read or write outside of their buffers, which no sanitizer sees inside
/// generated code. While it lives, the arguments of a call are copies between pages that end the
/// process when they are touched, each as long as its buffer; what the call may only read cannot be
/// written. Then results are copied back.
class GuardedCall {
 public:
  struct Argument {
    void* data = nullptr;
    std::uint64_t bytes = 0;
    bool is_read_only = false;
  };
  /// `pointers` are made to point to the copies, and put back at the end.
  GuardedCall(std::span<void*> pointers, std::span<const Argument> arguments, GuardedEnd end);
  ~GuardedCall();
  GuardedCall(const GuardedCall&) = delete;
  GuardedCall& operator=(const GuardedCall&) = delete;

 private:
  struct Copy {
    Argument of;
    std::byte* pages = nullptr;
    std::uint64_t page_bytes = 0;
    std::byte* data = nullptr;
  };
  const Copy& copy_of(const Argument& argument, GuardedEnd end);

  std::span<void*> pointers_;
  std::vector<void*> originals_;
  std::vector<Copy> copies_;
};

}  // namespace tenon
