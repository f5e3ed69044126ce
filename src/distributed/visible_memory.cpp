#include "distributed/visible_memory.h"

#include "base/error.h"
#include "base/text.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <utility>

namespace tenon::distributed {
namespace {

struct SharedMapping {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
};

}  // namespace

struct VisibleMemory::State {
  struct Region {
    std::uint64_t number = 0;
    int file = -1;
    std::size_t bytes = 0;
  };
  std::mutex mutex;  // accessed by the compute and the communication thread
  std::uint64_t last_number = 0;
  std::map<const std::byte*, Region> own;  // by first byte
  std::map<std::pair<pid_t, std::uint64_t>, SharedMapping> others;

  ~State() {
    for (const auto& [key, mapping] : others) munmap(mapping.begin, mapping.bytes);
  }
  void free(std::byte* begin) {
    const std::scoped_lock lock(mutex);
    const auto found = own.find(begin);
    munmap(begin, found->second.bytes);
    close(found->second.file);
    own.erase(found);
  }
};

VisibleMemory::VisibleMemory() : state_(std::make_shared<State>()) {}
VisibleMemory::~VisibleMemory() = default;

std::shared_ptr<std::byte> VisibleMemory::allocate(std::size_t bytes) {
  const int file = memfd_create("tenon-ranks", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0)
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    close(file);
    return nullptr;
  }
  auto* begin = static_cast<std::byte*>(memory);
  {
    const std::scoped_lock lock(state_->mutex);
    state_->own[begin] = {++state_->last_number, file, bytes};
  }
  return {begin, [state = state_](std::byte* pointer) { state->free(pointer); }};
}

MemoryWindow VisibleMemory::window_of(std::span<const std::byte> bytes) const {
  const std::scoped_lock lock(state_->mutex);
  auto found = state_->own.upper_bound(bytes.data());
  if (found == state_->own.begin()) return {};
  const auto& [begin, region] = *--found;
  const auto offset = static_cast<std::size_t>(bytes.data() - begin);
  if (offset + bytes.size() > region.bytes) return {};
  return {region.number, static_cast<std::uint64_t>(region.file), offset, bytes.size()};
}

std::span<const std::byte> VisibleMemory::view(pid_t process, const MemoryWindow& window) {
  const std::scoped_lock lock(state_->mutex);
  SharedMapping& mapping = state_->others[{process, window.region}];
  if (mapping.begin == nullptr) {
    const std::string path = concat("/proc/", process, "/fd/", window.file);
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat about = {};
    if (file < 0) return {};
    const bool is_there = fstat(file, &about) == 0;
    const auto bytes = static_cast<std::size_t>(about.st_size);
    void* memory = is_there ? mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
    close(file);
    if (memory == MAP_FAILED) return {};
    mapping = {static_cast<std::byte*>(memory), bytes};
  }
  if (window.offset > mapping.bytes || window.bytes > mapping.bytes - window.offset) return {};
  return {mapping.begin + window.offset, window.bytes};
}

}  // namespace tenon::distributed
