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
  std::uint64_t packed_bytes = 0, unpacked_bytes = 0;
  /// where minizip finds it again
  std::uint64_t number = 0, directory_offset = 0;
};

struct UnpackedEntry {
  std::span<const std::byte> bytes;
  /// null where the bytes lie in the archive itself
  std::shared_ptr<const void> owner;
};

/// Reads an archive that lies in memory, by minizip. Stored entries are not copied.
class ZipReader {
 public:
  /// Throws Error for bytes that are no zip archive.
  explicit ZipReader(std::span<const std::byte> archive);
  ~ZipReader();
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;

  /// Throws Error where the directory is damaged.
  std::vector<ZipEntry> entries();
  /// The entry's content. Throws Error where it does not fit what the directory says of it.
  UnpackedEntry unpacked(const ZipEntry& entry);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Writes stored entries one after the other, by minizip. The stream may be a pipe.
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

}  // namespace tenon::numpy
