#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tenon::inline runtime {

/// The end of a buffer that is adjacent to an inaccessible page.
enum class GuardedEnd : std::uint8_t { First, Last };
/// Value of the environment variable TENON_GUARD: `first`, `last`, or nullopt.
std::optional<GuardedEnd> guarded_end();

/// Makes pages inaccessible; both arguments are multiples of a page.
void forbid(std::byte* begin, std::uint64_t bytes);
/// A multiple of the page size on every machine.
inline constexpr std::uint64_t kGuardBytes = 65536;

/// Guard pages around the buffers of a kernel call, to find out-of-bounds accesses in generated
/// code, which sanitizers do not instrument. During its lifetime the arguments are exact-size
/// copies next to inaccessible pages; read-only arguments are write-protected. The destructor
/// copies results back.
class GuardedCall {
 public:
  struct Argument {
    void* data = nullptr;
    std::uint64_t bytes = 0;
    bool is_read_only = false;
  };
  /// Redirects `pointers` to the copies; the destructor restores them.
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

}  // namespace tenon::inline runtime
