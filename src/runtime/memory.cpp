#include "runtime/memory.h"

#include "base/text.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tenon::inline runtime {
namespace {

constexpr const char* kHint =
    "smaller extents need less; `ulimit -v` shows the limit of this process";
constexpr std::size_t kNamed = 10;

std::string step_text(const Program& program, std::size_t step) {
  return concat("step ", step, " ('", program.steps[step].name, "')");
}

// Returns the live bytes of the arena by step; overlapping buffers count once.
std::vector<std::uint64_t> taken_bytes(const Program& program, std::span<const std::size_t> buffers,
                                       std::span<const std::uint64_t> buffer_bytes) {
  std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>> ranges(program.steps.size());
  for (const std::size_t k : buffers) {
    const Program::Buffer& buffer = program.buffers[k];
    for (std::size_t step = buffer.first_step; step <= buffer.last_step && step < ranges.size();
         ++step)
      ranges[step].emplace_back(buffer.offset, buffer.offset + buffer_bytes[k]);
  }
  std::vector<std::uint64_t> taken;
  for (auto& list : ranges) {
    std::ranges::sort(list);
    std::uint64_t sum = 0, end = 0;
    for (const auto& [first, last] : list) {
      sum += last > end ? last - std::max(first, end) : 0;
      end = std::max(end, last);
    }
    taken.push_back(sum);
  }
  return taken;
}

}  // namespace

Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Memory::~Memory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

bool Memory::allocate(std::uint64_t bytes) {
  if (data_ != nullptr) munmap(data_, bytes_);
  data_ = nullptr;
  bytes_ = 0;
  if (bytes == 0) return true;
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return false;
  data_ = mapped;
  bytes_ = bytes;
  madvise(data_, bytes, MADV_HUGEPAGE);
  return true;
}

void release(const std::byte* begin, std::uint64_t bytes) {
  constexpr std::uintptr_t large_page = std::uintptr_t{2} << 20;
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = (address + large_page - 1) / large_page * large_page;
  const std::uintptr_t last = (address + bytes) / large_page * large_page;
  if (first >= last) return;
  void* pages = reinterpret_cast<void*>(first);
  madvise(pages, last - first, MADV_NOHUGEPAGE);
  madvise(pages, last - first, MADV_DONTNEED);
}

Error no_arena(const Program& program, std::span<const std::uint64_t> buffer_bytes,
               std::uint64_t arena_bytes) {
  std::vector<std::uint64_t> alive(program.steps.size(), 0);
  std::vector<std::size_t> planned;
  for (std::size_t k = 0; k < program.buffers.size(); ++k) {
    const Program::Buffer& buffer = program.buffers[k];
    if (buffer.place != Program::BufferKind::Arena) continue;
    planned.push_back(k);
    for (std::size_t step = buffer.first_step; step <= buffer.last_step && step < alive.size();
         ++step) {
      alive[step] += buffer_bytes[k];
    }
  }
  if (program.is_arena_planned) alive = taken_bytes(program, planned, buffer_bytes);
  Error error("no memory for the values between steps", ErrorKind::OutOfMemory);
  error.got(format_bytes(arena_bytes), " wanted").hint(kHint);
  if (alive.empty()) return error;
  const auto peak = static_cast<std::size_t>(std::ranges::max_element(alive) - alive.begin());
  std::erase_if(planned, [&](std::size_t k) {
    return program.buffers[k].first_step > peak || program.buffers[k].last_step < peak;
  });
  std::ranges::stable_sort(planned, std::greater(), [&](std::size_t k) { return buffer_bytes[k]; });
  std::string largest;
  for (std::size_t k = 0; k < std::min(planned.size(), kNamed); ++k) {
    const Program::Buffer& buffer = program.buffers[planned[k]];
    // Scratch of a step has no name.
    const std::string& name =
        buffer.name.empty() ? program.steps[buffer.first_step].name : buffer.name;
    largest += concat(k == 0 ? "" : ", ", "'", name, "' ", format_bytes(buffer_bytes[planned[k]]));
  }
  error.at(step_text(program, peak), ", where ", format_bytes(alive[peak]), " are alive");
  return error.got(format_bytes(arena_bytes), " wanted; the largest alive there: ", largest);
}

Error no_scratch(const Program& program, std::size_t step, std::uint64_t bytes, int thread_count) {
  return Error("no memory for what kernels keep for themselves", ErrorKind::OutOfMemory)
      .at(step_text(program, step), ", which wants most")
      .got(format_bytes(bytes), " for each of ", thread_count, " threads")
      .hint(kHint);
}

}  // namespace tenon::inline runtime
