#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace tenon::frontends::numpy {

/// One file in a zip archive.
struct ZipEntry {
  std::string name;
  std::uint64_t packed_bytes = 0, unpacked_bytes = 0;
  /// position for minizip
  std::uint64_t number = 0, directory_offset = 0;
};

struct UnpackedEntry {
  std::span<const std::byte> bytes;
  /// null for bytes in the archive itself
  std::shared_ptr<const void> owner;
};

/// Reads an archive in memory by minizip. Stored entries are not copied.
class ZipReader {
 public:
  /// Throws Error for bytes that are not a zip archive.
  explicit ZipReader(std::span<const std::byte> archive);
  ~ZipReader();
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;

  /// Throws Error for a damaged directory.
  std::vector<ZipEntry> entries();
  /// Returns the entry's content. Throws Error if it contradicts the directory.
  UnpackedEntry unpacked(const ZipEntry& entry);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Writes stored entries in sequence by minizip. The stream may be a pipe.
class ZipWriter {
 public:
  explicit ZipWriter(std::ostream& out);
  ~ZipWriter();
  ZipWriter(const ZipWriter&) = delete;
  ZipWriter& operator=(const ZipWriter&) = delete;

  void add(const std::string& name, std::span<const std::byte> content);
  void finish();

 private:
  struct Pending;
  std::unique_ptr<Pending> pending_;
  void* archive_;
};

}  // namespace tenon::frontends::numpy
