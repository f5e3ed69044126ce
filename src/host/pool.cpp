#include "host/pool.h"

#include "base/text.h"

#include <algorithm>
#include <atomic>

namespace tenon::inline host {
namespace {

constexpr std::uint64_t kGrain = 256;

bool is_free(const std::shared_ptr<const Memory>& memory) {
  if (memory.use_count() != 1) return false;
  // Pairs with the release of the last reference in any thread: its reads are complete.
  std::atomic_thread_fence(std::memory_order_acquire);
  return true;
}

}  // namespace

std::shared_ptr<const Memory> MemoryPool::take(std::uint64_t bytes, const std::string& value_name) {
  const std::uint64_t wanted = std::max(kGrain, (bytes + kGrain - 1) / kGrain * kGrain);
  Block* best = nullptr;
  for (Block& block : blocks_) {
    const std::uint64_t size = block.memory->bytes();
    if (size < wanted || size / 2 > wanted || !is_free(block.memory)) continue;
    if (best == nullptr || size < best->memory->bytes()) best = &block;
  }
  if (best != nullptr) {
    best->is_wanted = true;
    return best->memory;
  }
  Memory memory;
  if (!memory.allocate(wanted)) {
    throw Error("no memory for a value", ErrorKind::OutOfMemory)
        .at("'", value_name, "'")
        .got(format_bytes(bytes));
  }
  blocks_.push_back({std::make_shared<const Memory>(std::move(memory)), true});
  return blocks_.back().memory;
}

void MemoryPool::end_run() {
  std::erase_if(blocks_,
                [](const Block& block) { return !block.is_wanted && is_free(block.memory); });
  for (Block& block : blocks_) block.is_wanted = false;
}

std::uint64_t MemoryPool::bytes() const {
  std::uint64_t total = 0;
  for (const Block& block : blocks_) total += block.memory->bytes();
  return total;
}

}  // namespace tenon::inline host
