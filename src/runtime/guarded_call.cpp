#include "runtime/guarded_call.h"

#include "base/error.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>

namespace tenon::inline runtime {

std::optional<GuardedEnd> guarded_end() {
  const char* given = std::getenv("TENON_GUARD");
  if (given == nullptr || *given == '\0') return std::nullopt;
  const std::string_view word = given;
  if (word == "first") return GuardedEnd::First;
  if (word == "last") return GuardedEnd::Last;
  throw Error("TENON_GUARD is not understood", ErrorKind::Usage)
      .expected("first or last")
      .got(word);
}

void forbid(std::byte* begin, std::uint64_t bytes) { mprotect(begin, bytes, PROT_NONE); }

GuardedCall::GuardedCall(std::span<void*> pointers, std::span<const Argument> arguments,
                         GuardedEnd end)
    : pointers_(pointers), originals_(pointers.begin(), pointers.end()) {
  // Overlapping buffers share a copy: the longest is copied first.
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < arguments.size(); ++k) order.push_back(k);
  std::ranges::stable_sort(order, std::greater{},
                           [&](std::size_t k) { return arguments[k].bytes; });
  for (const std::size_t k : order) pointers_[k] = copy_of(arguments[k], end).data;
}

GuardedCall::~GuardedCall() {
  std::ranges::copy(originals_, pointers_.begin());
  for (const Copy& copy : copies_) {
    if (!copy.of.is_read_only && copy.of.bytes > 0)
      std::memcpy(copy.of.data, copy.data, copy.of.bytes);
    munmap(copy.pages, copy.page_bytes);
  }
}

const GuardedCall::Copy& GuardedCall::copy_of(const Argument& argument, GuardedEnd end) {
  const auto same = std::ranges::find_if(copies_, [&](const Copy& copy) {
    return copy.of.data == argument.data && argument.bytes > 0 && copy.of.bytes > 0;
  });
  if (same != copies_.end()) return *same;
  constexpr std::uint64_t page = kGuardBytes;
  const std::uint64_t inside = (argument.bytes + page - 1) / page * page;
  Copy copy{argument, nullptr, inside + 2 * page, nullptr};
  void* mapped = mmap(nullptr, copy.page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    throw Error("no memory to guard a buffer", ErrorKind::OutOfMemory)
        .got(argument.bytes, " bytes");
  copy.pages = static_cast<std::byte*>(mapped);
  copy.data = copy.pages + page + (end == GuardedEnd::Last ? inside - argument.bytes : 0);
  if (argument.bytes > 0) {
    mprotect(copy.pages + page, inside, PROT_READ | PROT_WRITE);
    std::memcpy(copy.data, argument.data, argument.bytes);
    if (argument.is_read_only) mprotect(copy.pages + page, inside, PROT_READ);
  }
  return copies_.emplace_back(copy);
}

}  // namespace tenon::inline runtime
