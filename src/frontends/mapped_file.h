#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tenon {

/// A regular file's bytes, mapped: read from disk when touched, and given back to the system under
/// pressure. The file must not shrink while it is mapped.
class MappedFile {
 public:
  /// Throws Error if the file cannot be read or is not a regular file.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  /// Opens `location` below `folder`. Refuses absolute paths, "..", and symbolic links that lead
  /// out of the folder: a model must not make its reader open what its author has no business with.
  static std::shared_ptr<const MappedFile> open_beneath(const std::string& folder,
                                                        const std::string& location);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  /// Copies bytes out past the mapping, so that they do not come to lie in memory twice. Only for
  /// a file that `open` gave; throws Error if they cannot be read any more.
  void read(std::uint64_t offset, std::span<std::byte> to) const;
  /// Lets go of the pages touched so far; they are read again if touched again.
  void forget_pages() const;

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  static std::shared_ptr<MappedFile> map(int file, const std::string& shown_path);

  std::span<const std::byte> bytes_;
  /// kept open for `read`
  int file_ = -1;
  std::string path_;
};

}  // namespace tenon
