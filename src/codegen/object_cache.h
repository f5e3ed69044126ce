#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tenon::codegen {

/// Content-addressed cache of generated object code on disk, shared by threads and processes.
/// Evicts the least recently used files beyond its capacity.
///
/// A cache never fails a compilation: a damaged entry counts as missing, and an entry that cannot
/// be written is dropped. The code is executed, so a folder that belongs to another user, or that
/// others may write to, is not used.
class ObjectCache {
 public:
  ObjectCache(std::filesystem::path folder, std::uint64_t capacity_bytes);

  std::optional<std::vector<std::byte>> find(std::string_view key) const;
  void store(std::string_view key, std::span<const std::byte> code) const;

 private:
  std::filesystem::path path_of(std::string_view key) const;
  void evict() const;

  std::filesystem::path folder_;
  std::uint64_t capacity_bytes_;
};

/// Returns the cache in the folder that TENON_KERNEL_CACHE names, otherwise in `kernels` of the
/// user's cache folder; null for TENON_KERNEL_CACHE=off and where no safe folder exists.
std::shared_ptr<const ObjectCache> user_object_cache();

}  // namespace tenon::codegen
