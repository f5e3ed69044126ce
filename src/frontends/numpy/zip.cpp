#include "frontends/numpy/zip.h"

#include "base/error.h"
#include "base/text.h"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <new>

namespace tenon::numpy {
namespace {

// Signatures and sizes of the records, after PKWARE's APPNOTE.
constexpr std::uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50;
constexpr std::uint32_t kEnd = 0x06054b50, kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr std::size_t kLocalHeaderBytes = 30, kDirectoryEntryBytes = 46, kEndBytes = 22;
constexpr std::size_t kEnd64Bytes = 56, kEnd64LocatorBytes = 20, kMaxCommentBytes = 65535;
constexpr std::uint32_t kIn64 = 0xffffffff;  // the number is in the extra field instead
constexpr int kStored = 0, kDeflated = 8;

// Beyond the first gigabyte an honest array does not shrink to so little.
constexpr std::uint64_t kAlwaysUnpacked = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxGrowth = 256;

Error damaged(std::string_view what) { return Error(concat("npz: ", what)); }

/// Numbers at offsets that are checked against the archive's end.
class Archive {
 public:
  explicit Archive(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size() const { return bytes_.size(); }

  std::span<const std::byte> part(std::uint64_t offset, std::uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      throw damaged("the archive is damaged: something lies outside of it");
    }
    return bytes_.subspan(offset, size);
  }
  std::uint64_t number(std::uint64_t offset, int width) const {
    const std::span<const std::byte> digits = part(offset, static_cast<std::uint64_t>(width));
    std::uint64_t value = 0;
    for (std::size_t k = digits.size(); k-- > 0;) {
      value = value << 8 | std::to_integer<std::uint64_t>(digits[k]);
    }
    return value;
  }
  std::string text(std::uint64_t offset, std::uint64_t size) const {
    const std::span<const std::byte> characters = part(offset, size);
    return {reinterpret_cast<const char*>(characters.data()), characters.size()};
  }

 private:
  std::span<const std::byte> bytes_;
};

// The end record is the last thing but for a comment of unknown length.
std::uint64_t find_end(const Archive& archive) {
  if (archive.size() >= kEndBytes) {
    const std::uint64_t last = archive.size() - kEndBytes;
    for (std::uint64_t back = 0; back <= std::min<std::uint64_t>(last, kMaxCommentBytes); ++back) {
      if (archive.number(last - back, 4) == kEnd) return last - back;
    }
  }
  throw damaged("not a zip archive, or cut short");
}

struct Directory {
  std::uint64_t offset = 0, entry_count = 0;
};

Directory find_directory(const Archive& archive) {
  const std::uint64_t end = find_end(archive);
  Directory directory{archive.number(end + 16, 4), archive.number(end + 10, 2)};
  if (directory.offset != kIn64 && directory.entry_count != 0xffff) return directory;
  if (end < kEnd64LocatorBytes || archive.number(end - kEnd64LocatorBytes, 4) != kEnd64Locator) {
    return directory;
  }
  const std::uint64_t end64 = archive.number(end - kEnd64LocatorBytes + 8, 8);
  archive.part(end64, kEnd64Bytes);
  if (archive.number(end64, 4) != kEnd64) throw damaged("the archive's end is damaged");
  return {archive.number(end64 + 48, 8), archive.number(end64 + 32, 8)};
}

// The 64-bit numbers of those that did not fit, in their fixed order.
void read_extra(const Archive& archive, std::uint64_t at, std::uint64_t end, ZipEntry& entry) {
  while (at + 4 <= end) {
    const std::uint64_t tag = archive.number(at, 2), size = archive.number(at + 2, 2);
    if (tag == 1) {
      std::uint64_t next = at + 4;
      for (std::uint64_t* field :
           {&entry.unpacked_bytes, &entry.packed_bytes, &entry.header_offset}) {
        if (*field != kIn64) continue;
        if (next + 8 > at + 4 + size) throw damaged("an entry's sizes are missing");
        *field = archive.number(next, 8);
        next += 8;
      }
      return;
    }
    at += 4 + size;
  }
}

void require_checksum(const ZipEntry& entry, std::span<const std::byte> content) {
  uLong sum = crc32(0, nullptr, 0);
  constexpr std::size_t kStep = 1 << 30;
  for (std::size_t at = 0; at < content.size(); at += kStep) {
    const std::size_t size = std::min(kStep, content.size() - at);
    sum = crc32(sum, reinterpret_cast<const Bytef*>(content.data() + at), static_cast<uInt>(size));
  }
  if (sum != entry.checksum) throw damaged(concat("the checksum of '", entry.name, "' is wrong"));
}

UnpackedEntry inflate_entry(std::span<const std::byte> packed, const ZipEntry& entry) {
  const std::uint64_t size = entry.unpacked_bytes;
  if (size > kAlwaysUnpacked && size / kMaxGrowth > packed.size()) {
    throw damaged(concat("'", entry.name, "' unpacks to far more than it is"))
        .expected("at most ", kMaxGrowth, " times ", format_bytes(packed.size()))
        .got(format_bytes(size));
  }
  // Its pages come into being as they are written, so a false size costs nothing.
  void* block = std::calloc(size + 1, 1);
  if (!block) {
    throw Error(concat("no memory to unpack '", entry.name, "'"), ErrorKind::OutOfMemory).got(format_bytes(size), " wanted");
  }
  const std::shared_ptr<void> owner(block, std::free);

  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  const std::shared_ptr<z_stream> guard(&stream, inflateEnd);
  std::uint64_t read = 0, made = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    constexpr std::uint64_t kStep = 1 << 30;
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + read));
    stream.avail_in = static_cast<uInt>(std::min(kStep, packed.size() - read));
    stream.next_out = static_cast<Bytef*>(block) + made;
    stream.avail_out = static_cast<uInt>(std::min(kStep, size + 1 - made));
    const uInt in_before = stream.avail_in, out_before = stream.avail_out;
    status = inflate(&stream, Z_NO_FLUSH);
    read += in_before - stream.avail_in;
    made += out_before - stream.avail_out;
  }
  if (status != Z_STREAM_END || made != size) {
    throw damaged(concat("'", entry.name, "' does not unpack to its size"));
  }
  return {{static_cast<const std::byte*>(block), size}, owner};
}

void append_number(std::string& out, std::uint64_t value, int width) {
  for (int k = 0; k < width; ++k) out += static_cast<char>(value >> (8 * k));
}

std::uint64_t short_form(std::uint64_t value) { return std::min<std::uint64_t>(value, kIn64); }

// What a local header and a directory entry have in common: version needed to name length.
void append_entry(std::string& out, const ZipEntry& entry, std::size_t extra_bytes) {
  append_number(out, 45, 2);  // version needed: 64-bit sizes
  append_number(out, 0, 2);   // flags
  append_number(out, kStored, 2);
  append_number(out, 0, 2);     // time
  append_number(out, 0x21, 2);  // date: 1 January 1980, so that the same arrays give the same bytes
  append_number(out, entry.checksum, 4);
  append_number(out, short_form(entry.packed_bytes), 4);
  append_number(out, short_form(entry.unpacked_bytes), 4);
  append_number(out, entry.name.size(), 2);
  append_number(out, extra_bytes, 2);
}

std::string extra_of(const ZipEntry& entry, bool with_offset) {
  std::string numbers;
  if (entry.unpacked_bytes >= kIn64) append_number(numbers, entry.unpacked_bytes, 8);
  if (entry.packed_bytes >= kIn64) append_number(numbers, entry.packed_bytes, 8);
  if (with_offset && entry.header_offset >= kIn64) append_number(numbers, entry.header_offset, 8);
  if (numbers.empty()) return {};
  std::string extra;
  append_number(extra, 1, 2);
  append_number(extra, numbers.size(), 2);
  return extra + numbers;
}

}  // namespace

std::vector<ZipEntry> read_zip_directory(std::span<const std::byte> bytes) {
  const Archive archive(bytes);
  const Directory directory = find_directory(archive);
  std::vector<ZipEntry> entries;
  std::uint64_t at = directory.offset;
  for (std::uint64_t k = 0; k < directory.entry_count; ++k) {
    archive.part(at, kDirectoryEntryBytes);
    if (archive.number(at, 4) != kDirectoryEntry)
      throw damaged("the archive's directory is damaged");
    ZipEntry entry;
    if (archive.number(at + 8, 2) & 1) {
      throw Error("npz: the archive is encrypted", ErrorKind::Unsupported);
    }
    entry.method = static_cast<int>(archive.number(at + 10, 2));
    entry.checksum = static_cast<std::uint32_t>(archive.number(at + 16, 4));
    entry.packed_bytes = archive.number(at + 20, 4);
    entry.unpacked_bytes = archive.number(at + 24, 4);
    const std::uint64_t name_bytes = archive.number(at + 28, 2);
    const std::uint64_t extra_bytes = archive.number(at + 30, 2);
    const std::uint64_t comment_bytes = archive.number(at + 32, 2);
    entry.header_offset = archive.number(at + 42, 4);
    at += kDirectoryEntryBytes;
    entry.name = archive.text(at, name_bytes);
    archive.part(at + name_bytes, extra_bytes + comment_bytes);
    read_extra(archive, at + name_bytes, at + name_bytes + extra_bytes, entry);
    at += name_bytes + extra_bytes + comment_bytes;
    entries.push_back(std::move(entry));
  }
  return entries;
}

UnpackedEntry unpack_zip_entry(std::span<const std::byte> bytes, const ZipEntry& entry) {
  const Archive archive(bytes);
  archive.part(entry.header_offset, kLocalHeaderBytes);
  if (archive.number(entry.header_offset, 4) != kLocalHeader) {
    throw damaged(concat("nothing lies where '", entry.name, "' should"));
  }
  const std::uint64_t start = entry.header_offset + kLocalHeaderBytes +
                              archive.number(entry.header_offset + 26, 2) +
                              archive.number(entry.header_offset + 28, 2);
  const std::span<const std::byte> packed = archive.part(start, entry.packed_bytes);
  UnpackedEntry unpacked;
  if (entry.method == kStored) {
    if (entry.packed_bytes != entry.unpacked_bytes) {
      throw damaged(concat("'", entry.name, "' is stored, but has two sizes"));
    }
    unpacked.bytes = packed;
  } else if (entry.method == kDeflated) {
    unpacked = inflate_entry(packed, entry);
  } else {
    throw Error(concat("npz: '", entry.name, "' is packed in an unknown way"),
                ErrorKind::Unsupported)
        .expected("stored or deflated")
        .got("method ", entry.method);
  }
  require_checksum(entry, unpacked.bytes);
  return unpacked;
}

void ZipWriter::add(const std::string& name, std::span<const std::byte> content) {
  ZipEntry entry;
  entry.name = name;
  entry.packed_bytes = entry.unpacked_bytes = content.size();
  entry.header_offset = written_;
  uLong sum = crc32(0, nullptr, 0);
  sum = crc32_z(sum, reinterpret_cast<const Bytef*>(content.data()), content.size());
  entry.checksum = static_cast<std::uint32_t>(sum);
  std::string header;
  append_number(header, kLocalHeader, 4);
  const std::string extra = extra_of(entry, false);
  append_entry(header, entry, extra.size());
  header += entry.name + extra;
  out_ << header;
  out_.write(reinterpret_cast<const char*>(content.data()),
             static_cast<std::streamsize>(content.size()));
  written_ += header.size() + content.size();
  entries_.push_back(std::move(entry));
}

void ZipWriter::finish() {
  std::string directory;
  for (const ZipEntry& entry : entries_) {
    append_number(directory, kDirectoryEntry, 4);
    append_number(directory, 45, 2);  // version made by
    const std::string extra = extra_of(entry, true);
    append_entry(directory, entry, extra.size());
    append_number(directory, 0, 2);  // comment
    append_number(directory, 0, 2);  // disk
    append_number(directory, 0, 2);  // attributes
    append_number(directory, 0, 4);
    append_number(directory, short_form(entry.header_offset), 4);
    directory += entry.name + extra;
  }
  const std::uint64_t count = entries_.size();
  std::string end;
  if (written_ >= kIn64 || count >= 0xffff) {
    const std::uint64_t end64 = written_ + directory.size();
    append_number(end, kEnd64, 4);
    append_number(end, kEnd64Bytes - 12, 8);
    append_number(end, 45, 2);
    append_number(end, 45, 2);
    append_number(end, 0, 8);  // disks
    append_number(end, count, 8);
    append_number(end, count, 8);
    append_number(end, directory.size(), 8);
    append_number(end, written_, 8);
    append_number(end, kEnd64Locator, 4);
    append_number(end, 0, 4);
    append_number(end, end64, 8);
    append_number(end, 1, 4);
  }
  append_number(end, kEnd, 4);
  append_number(end, 0, 4);  // disks
  append_number(end, std::min<std::uint64_t>(count, 0xffff), 2);
  append_number(end, std::min<std::uint64_t>(count, 0xffff), 2);
  append_number(end, short_form(directory.size()), 4);
  append_number(end, short_form(written_), 4);
  append_number(end, 0, 2);
  out_ << directory << end;
}

}  // namespace tenon::numpy
