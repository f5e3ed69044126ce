#include "frontends/numpy/zip.h"

#include "base/error.h"
#include "base/text.h"

#include <minizip/unzip.h>
#include <minizip/zip.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace tenon::frontends::numpy {
namespace {

constexpr uLong kStored = 0, kDeflated = Z_DEFLATED, kIsEncrypted = 1;
constexpr std::uint64_t kMaxPlainBytes = 0xffffffff;  // above, an entry has 64-bit sizes
constexpr std::uint64_t kMaxStep = std::uint64_t{1} << 30;

// Beyond the first gigabyte, real arrays do not compress this well.
constexpr std::uint64_t kAlwaysUnpacked = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxGrowth = 256;

Error damaged(std::string_view what) { return Error(concat("npz: ", what)); }

/// Bytes in memory as a file for minizip.
struct MemoryFile {
  std::span<const std::byte> bytes;
  std::uint64_t at = 0;
};

MemoryFile& memory(void* stream) { return *static_cast<MemoryFile*>(stream); }

void* open_given(void* given, const void*, int) { return given; }
int close_nothing(void*, void*) { return 0; }

uLong read_memory(void*, void* stream, void* target, uLong size) {
  MemoryFile& file = memory(stream);
  const uLong count = std::min<uLong>(size, file.bytes.size() - file.at);
  std::copy_n(file.bytes.begin() + static_cast<std::ptrdiff_t>(file.at), count,
              static_cast<std::byte*>(target));
  file.at += count;
  return count;
}
uLong write_nothing(void*, void*, const void*, uLong) { return 0; }
ZPOS64_T tell_memory(void*, void* stream) { return memory(stream).at; }
long seek_memory(void*, void* stream, ZPOS64_T offset, int origin) {
  MemoryFile& file = memory(stream);
  const std::uint64_t from = origin == ZLIB_FILEFUNC_SEEK_SET   ? 0
                             : origin == ZLIB_FILEFUNC_SEEK_CUR ? file.at
                                                                : file.bytes.size();
  std::uint64_t to = 0;
  if (__builtin_add_overflow(from, offset, &to) || to > file.bytes.size()) return -1;
  file.at = to;
  return 0;
}
int has_no_error(void*, void*) { return 0; }

std::shared_ptr<void> memory_for(const ZipEntry& entry) {
  // calloc maps pages on first write, so that a false size costs no memory.
  void* block = std::calloc(entry.unpacked_bytes + 1, 1);
  if (block) return {block, std::free};
  throw Error(concat("no memory to unpack '", entry.name, "'"), ErrorKind::OutOfMemory)
      .got(format_bytes(entry.unpacked_bytes), " wanted");
}

}  // namespace

struct ZipReader::State {
  MemoryFile file;
  unzFile archive = nullptr;
};

ZipReader::ZipReader(std::span<const std::byte> archive) : state_(std::make_unique<State>()) {
  // minizip accepts a truncated end record, and does not search for it at the beginning, its
  // position in an empty archive.
  constexpr std::array<std::byte, 4> kEnd{std::byte{'P'}, std::byte{'K'}, std::byte{5},
                                          std::byte{6}};
  constexpr std::size_t kEndBytes = 22, kMaxCommentBytes = 0xffff;
  const auto tail = archive.last(std::min(archive.size(), kEndBytes + kMaxCommentBytes));
  const auto end = std::find_end(tail.begin(), tail.end(), kEnd.begin(), kEnd.end());
  if (static_cast<std::size_t>(tail.end() - end) < kEndBytes) {
    throw damaged("not a zip archive, or cut short");
  }
  if (end == archive.begin()) {
    const auto counts = archive.subspan(kEnd.size(), kEndBytes - kEnd.size() - 2);
    if (std::ranges::count(counts, std::byte{0}) == std::ssize(counts)) return;
    throw damaged("the archive's directory is damaged");
  }
  state_->file.bytes = archive;
  zlib_filefunc64_def functions{open_given,  read_memory,   write_nothing, tell_memory,
                                seek_memory, close_nothing, has_no_error,  &state_->file};
  state_->archive = unzOpen2_64("", &functions);
  if (!state_->archive) throw damaged("not a zip archive, or cut short");
}

ZipReader::~ZipReader() {
  if (state_->archive) unzClose(state_->archive);
}

std::vector<ZipEntry> ZipReader::entries() {
  if (!state_->archive) return {};
  unz_global_info64 about{};
  unzGetGlobalInfo64(state_->archive, &about);
  std::vector<ZipEntry> entries;
  for (std::uint64_t k = 0; k < about.number_entry; ++k) {
    const int status =
        k == 0 ? unzGoToFirstFile(state_->archive) : unzGoToNextFile(state_->archive);
    unz_file_info64 info{};
    unz64_file_pos place{};
    if (status != UNZ_OK || unzGetFilePos64(state_->archive, &place) != UNZ_OK ||
        unzGetCurrentFileInfo64(state_->archive, &info, nullptr, 0, nullptr, 0, nullptr, 0) !=
            UNZ_OK) {
      throw damaged("the archive's directory is damaged");
    }
    std::string name(info.size_filename, '\0');
    if (unzGetCurrentFileInfo64(state_->archive, &info, name.data(), info.size_filename, nullptr, 0,
                                nullptr, 0) != UNZ_OK) {
      throw damaged("the archive's directory is damaged");
    }
    if (info.flag & kIsEncrypted)
      throw Error("npz: the archive is encrypted", ErrorKind::Unsupported);
    if (info.compression_method != kStored && info.compression_method != kDeflated) {
      throw Error(concat("npz: '", name, "' is packed in an unknown way"), ErrorKind::Unsupported)
          .expected("stored or deflated")
          .got("method ", info.compression_method);
    }
    if (info.compression_method == kStored && info.compressed_size != info.uncompressed_size) {
      throw damaged(concat("'", name, "' is stored, but has two sizes"));
    }
    entries.push_back({std::move(name), info.compressed_size, info.uncompressed_size,
                       place.num_of_file, place.pos_in_zip_directory});
  }
  return entries;
}

UnpackedEntry ZipReader::unpacked(const ZipEntry& entry) {
  const unz64_file_pos place{entry.directory_offset, entry.number};
  unz_file_info64 info{};
  if (unzGoToFilePos64(state_->archive, &place) != UNZ_OK ||
      unzGetCurrentFileInfo64(state_->archive, &info, nullptr, 0, nullptr, 0, nullptr, 0) !=
          UNZ_OK) {
    throw damaged("the archive's directory is damaged");
  }
  const std::uint64_t size = entry.unpacked_bytes;
  if (size > kAlwaysUnpacked && size / kMaxGrowth > entry.packed_bytes) {
    throw damaged(concat("'", entry.name, "' unpacks to far more than it is"))
        .expected("at most ", kMaxGrowth, " times ", format_bytes(entry.packed_bytes))
        .got(format_bytes(size));
  }
  if (unzOpenCurrentFile(state_->archive) != UNZ_OK) {
    throw damaged(concat("'", entry.name, "' is not where or what the archive's directory says"));
  }
  const std::shared_ptr<void> opened(state_->archive,
                                     [](void* archive) { unzCloseCurrentFile(archive); });
  const std::uint64_t start = unzGetCurrentFileZStreamPos64(state_->archive);
  const std::span<const std::byte> bytes = state_->file.bytes;
  if (start > bytes.size() || entry.packed_bytes > bytes.size() - start) {
    throw damaged("the archive is damaged: something lies outside of it");
  }
  UnpackedEntry unpacked;
  if (info.compression_method == kStored) {
    unpacked.bytes = bytes.subspan(start, size);
  } else {
    const std::shared_ptr<void> block = memory_for(entry);
    auto* target = static_cast<std::byte*>(block.get());
    std::uint64_t made = 0;
    // Requests one byte more than expected, to detect excess data.
    while (made <= size) {
      const auto step = static_cast<unsigned>(std::min(kMaxStep, size + 1 - made));
      const int count = unzReadCurrentFile(state_->archive, target + made, step);
      if (count <= 0) break;
      made += static_cast<std::uint64_t>(count);
    }
    if (made != size) throw damaged(concat("'", entry.name, "' does not unpack to its size"));
    unpacked = {{target, size}, block};
  }
  const uLong sum =
      crc32_z(crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(unpacked.bytes.data()), size);
  if (sum != info.crc) throw damaged(concat("the checksum of '", entry.name, "' is wrong"));
  return unpacked;
}

/// Output since the last flush. minizip seeks back to an entry's header within it, which is
/// impossible in a pipe.
struct ZipWriter::Pending {
  std::ostream& out;
  std::string bytes = {};
  std::uint64_t begin = 0, at = 0;  // positions in the archive

  void flush() {
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    begin += bytes.size();
    bytes.clear();
  }

  static Pending& of(void* stream) { return *static_cast<Pending*>(stream); }
  static uLong read(void*, void*, void*, uLong) { return 0; }
  static uLong write(void*, void* stream, const void* from, uLong size) {
    Pending& file = of(stream);
    const std::size_t start = file.at - file.begin;
    file.bytes.resize(std::max<std::size_t>(file.bytes.size(), start + size));
    std::copy_n(static_cast<const char*>(from), size, file.bytes.data() + start);
    file.at += size;
    return size;
  }
  static ZPOS64_T tell(void*, void* stream) { return of(stream).at; }
  static long seek(void*, void* stream, ZPOS64_T offset, int origin) {
    Pending& file = of(stream);
    const std::uint64_t end = file.begin + file.bytes.size();
    const std::uint64_t from = origin == ZLIB_FILEFUNC_SEEK_SET   ? 0
                               : origin == ZLIB_FILEFUNC_SEEK_CUR ? file.at
                                                                  : end;
    if (from + offset < file.begin || from + offset > end) return -1;
    file.at = from + offset;
    return 0;
  }
  static int error(void*, void* stream) { return of(stream).out ? 0 : 1; }
};

ZipWriter::ZipWriter(std::ostream& out) : pending_(new Pending{out}) {
  zlib_filefunc64_def functions{open_given,    Pending::read, Pending::write, Pending::tell,
                                Pending::seek, close_nothing, Pending::error, pending_.get()};
  archive_ = zipOpen2_64("", APPEND_STATUS_CREATE, nullptr, &functions);
  if (!archive_) throw Error("npz: the archive cannot be begun");
}

ZipWriter::~ZipWriter() {
  if (archive_) zipClose(archive_, nullptr);
}

void ZipWriter::add(const std::string& name, std::span<const std::byte> content) {
  zip_fileinfo info{};
  info.dosDate = 0x00210000;  // 1 January 1980, so that the same arrays give the same bytes
  int status = zipOpenNewFileInZip64(archive_, name.c_str(), &info, nullptr, 0, nullptr, 0, nullptr,
                                     kStored, 0, content.size() >= kMaxPlainBytes ? 1 : 0);
  for (std::uint64_t at = 0; at < content.size() && status == ZIP_OK; at += kMaxStep) {
    const auto step = static_cast<unsigned>(std::min<std::uint64_t>(kMaxStep, content.size() - at));
    status = zipWriteInFileInZip(archive_, content.data() + at, step);
  }
  if (status == ZIP_OK) status = zipCloseFileInZip(archive_);
  pending_->flush();
  if (status != ZIP_OK) throw Error(concat("npz: '", name, "' cannot be written"));
}

void ZipWriter::finish() {
  const int status = zipClose(archive_, nullptr);
  archive_ = nullptr;
  pending_->flush();
  if (status != ZIP_OK) throw Error("npz: the archive cannot be ended");
}

}  // namespace tenon::frontends::numpy
