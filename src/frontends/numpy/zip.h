#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace tenon::numpy {

/// One file in a zip archive.
struct ZipEntry {
  std::string name;
  int method = 0;  ///< 0: stored, 8: deflated
  std::uint32_t checksum = 0;
  std::uint64_t packed_bytes = 0, unpacked_bytes = 0;
  std::uint64_t header_offset = 0;
};

/// The archive's directory. Throws Error for bytes that are no zip archive.
std::vector<ZipEntry> read_zip_directory(std::span<const std::byte> archive);

struct UnpackedEntry {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  ///< null where the bytes lie in the archive itself
};
/// The entry's content. Throws Error where it does not fit what the directory says of it.
UnpackedEntry unpack_zip_entry(std::span<const std::byte> archive, const ZipEntry& entry);

/// Writes stored entries one after the other.
class ZipWriter {
 public:
  explicit ZipWriter(std::ostream& out) : out_(out) {}
  void add(const std::string& name, std::span<const std::byte> content);
  void finish();

 private:
  std::ostream& out_;
  std::uint64_t written_ = 0;
  std::vector<ZipEntry> entries_;
};

}  // namespace tenon::numpy
