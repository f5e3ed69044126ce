#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tenon::frontends {

/// Memory-mapped regular file: pages are read on first touch and evicted under memory pressure. The
/// file must not shrink while it is mapped.
class MappedFile {
 public:
  /// Throws Error if the file cannot be read or is not a regular file.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  /// Opens `location` below `folder`. Refuses absolute paths, "..", and symbolic links out of the
  /// folder: a model must not make its reader open other files of the user.
  static std::shared_ptr<const MappedFile> open_beneath(const std::string& folder,
                                                        const std::string& location);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  /// Copies bytes by file reads instead of the mapping, which would keep them in memory twice. Only
  /// for a file from `open`; throws Error if the read fails.
  void read(std::uint64_t offset, std::span<std::byte> to) const;
  /// Evicts the pages touched so far; they are read again on the next touch.
  void forget_pages() const;

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  static std::shared_ptr<MappedFile> map(int file, const std::string& shown_path);

  std::span<const std::byte> bytes_;
  /// Kept open for `read`.
  int file_ = -1;
  std::string path_;
};

}  // namespace tenon::frontends
