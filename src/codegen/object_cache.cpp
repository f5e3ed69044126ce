#include "codegen/object_cache.h"

#include "base/error.h"
#include "base/new_file.h"
#include "base/user_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace tenon::codegen {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kUserCapacityBytes = std::uint64_t{512} << 20;
// Bounds the allocation for a damaged length field.
constexpr std::uint64_t kLargestEntry = std::uint64_t{256} << 20;

// FNV-1a over 64 bits.
std::uint64_t hash_of(std::span<const std::byte> bytes, std::uint64_t seed = 0) {
  std::uint64_t hash = 0xcbf29ce484222325U ^ seed;
  for (const std::byte byte : bytes)
    hash = (hash ^ static_cast<std::uint8_t>(byte)) * 0x100000001b3U;
  return hash;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Precedes the key and the code in a file.
struct CacheEntryHeader {
  std::array<char, 8> magic = {'t', 'n', 'n', 'o', 'b', 'j', '0', '1'};
  std::uint64_t key_bytes = 0, code_bytes = 0, code_hash = 0;
};

bool is_safe(const fs::path& folder) {
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return false;
  return status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

ObjectCache::ObjectCache(fs::path folder, std::uint64_t capacity_bytes)
    : folder_(std::move(folder)), capacity_bytes_(capacity_bytes) {}

fs::path ObjectCache::path_of(std::string_view key) const {
  std::array<char, 33> name{};
  const auto bytes = bytes_of(key);
  std::snprintf(name.data(), name.size(), "%016llx%016llx",
                static_cast<unsigned long long>(hash_of(bytes)),
                static_cast<unsigned long long>(hash_of(bytes, 0x9e3779b97f4a7c15U)));
  return folder_ / name.data();
}

std::optional<std::vector<std::byte>> ObjectCache::find(std::string_view key) const {
  const fs::path path = path_of(key);
  std::ifstream in(path, std::ios::binary);
  CacheEntryHeader header;
  const CacheEntryHeader expected;
  if (!in.read(reinterpret_cast<char*>(&header), sizeof(header)) ||
      header.magic != expected.magic || header.key_bytes != key.size() ||
      header.code_bytes > kLargestEntry) {
    return std::nullopt;
  }
  // The whole key is compared: two keys with one hash are two entries that replace each other.
  std::string stored(key.size(), '\0');
  std::vector<std::byte> code(header.code_bytes);
  in.read(stored.data(), static_cast<std::streamsize>(stored.size()));
  in.read(reinterpret_cast<char*>(code.data()), static_cast<std::streamsize>(code.size()));
  if (!in || stored != key || hash_of(code) != header.code_hash) return std::nullopt;
  std::error_code unwritable;
  fs::last_write_time(path, fs::file_time_type::clock::now(), unwritable);
  return code;
}

void ObjectCache::store(std::string_view key, std::span<const std::byte> code) const {
  if (code.size() > std::min(kLargestEntry, capacity_bytes_ / 4)) return;
  CacheEntryHeader header;
  header.key_bytes = key.size();
  header.code_bytes = code.size();
  header.code_hash = hash_of(code);
  try {
    NewFile file(path_of(key).string());
    file.out().write(reinterpret_cast<const char*>(&header), sizeof(header));
    file.out().write(key.data(), static_cast<std::streamsize>(key.size()));
    file.out().write(reinterpret_cast<const char*>(code.data()),
                     static_cast<std::streamsize>(code.size()));
    file.finish();
  } catch (const Error&) {
    return;  // full or read-only: generated again next time
  }
  evict();
}

void ObjectCache::evict() const {
  struct Entry {
    fs::file_time_type used;
    std::uint64_t bytes = 0;
    fs::path path;
  };
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  std::error_code gone;  // another process may evict at the same time
  for (fs::directory_iterator each(folder_, gone), end; !gone && each != end;
       each.increment(gone)) {
    std::error_code vanished;
    const std::uint64_t bytes = each->file_size(vanished);
    const fs::file_time_type used = each->last_write_time(vanished);
    if (vanished) continue;
    entries.push_back({used, bytes, each->path()});
    total += bytes;
  }
  if (total <= capacity_bytes_) return;
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& entry : entries) {
    // Evicts a quarter at once, so that a full cache is not listed and sorted for every entry.
    if (total <= capacity_bytes_ / 4 * 3) return;
    std::error_code vanished;
    fs::remove(entry.path, vanished);
    total -= entry.bytes;
  }
}

std::shared_ptr<const ObjectCache> user_object_cache() {
  fs::path folder;
  if (const char* named = std::getenv("TENON_KERNEL_CACHE"); named != nullptr && *named != '\0') {
    if (std::strcmp(named, "off") == 0) return nullptr;
    folder = named;
  } else {
    const std::optional<std::string> user = user_cache_folder();
    if (!user) return nullptr;
    folder = fs::path(*user) / "kernels";
  }
  std::error_code failed;
  if (fs::create_directories(folder, failed))
    fs::permissions(folder, fs::perms::owner_all, fs::perm_options::replace, failed);
  if (!is_safe(folder)) return nullptr;
  return std::make_shared<const ObjectCache>(folder, kUserCapacityBytes);
}

}  // namespace tenon::codegen
