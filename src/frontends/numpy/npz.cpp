#include "frontends/numpy/npz.h"

#include "base/error.h"
#include "base/new_file.h"
#include "base/text.h"
#include "frontends/mapped_file.h"
#include "frontends/numpy/npy.h"
#include "frontends/numpy/zip.h"

namespace tenon::frontends::numpy {
namespace {

// Applies `read` to the bytes of each array and their owner; returns the results by name.
template <class Array, class Read>
std::map<std::string, Array> arrays_of(std::span<const std::byte> bytes,
                                       const std::shared_ptr<const void>& owner, const Read& read) {
  constexpr std::string_view kSuffix = ".npy";
  // Limits the total as well, because entries may share compressed bytes.
  constexpr std::uint64_t kMaxTotalBytes = std::uint64_t{4} << 30;
  constexpr std::uint64_t kMaxGrowth = 256;
  std::uint64_t total_bytes = 0;
  std::map<std::string, Array> arrays;
  ZipReader archive(bytes);
  for (const ZipEntry& entry : archive.entries()) {
    if (!entry.name.ends_with(kSuffix)) continue;  // NumPy ignores other files as well
    const std::string name = entry.name.substr(0, entry.name.size() - kSuffix.size());
    if (arrays.contains(name)) throw Error(concat("npz: two arrays are called '", name, "'"));
    if (__builtin_add_overflow(total_bytes, entry.unpacked_bytes, &total_bytes) ||
        (total_bytes > kMaxTotalBytes && total_bytes / kMaxGrowth > bytes.size())) {
      throw Error("npz: the archive unpacks to far more than it is")
          .got(format_bytes(total_bytes), " in ", format_bytes(bytes.size()));
    }
    const UnpackedEntry unpacked = archive.unpacked(entry);
    try {
      arrays.emplace(name, read(unpacked.bytes, unpacked.owner ? unpacked.owner : owner));
    } catch (Error& error) {
      throw error.has_place() ? error : error.at("array '", name, "'");
    }
  }
  return arrays;
}

}  // namespace

std::map<std::string, Tensor> read_npz(std::span<const std::byte> bytes,
                                       std::shared_ptr<const void> owner) {
  return arrays_of<Tensor>(bytes, owner,
                           [](auto array, auto of) { return read_npy(array, {}, of); });
}

std::map<std::string, StoredArray> stored_npz_file(const std::string& path) try {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return arrays_of<StoredArray>(file->bytes(), file, stored_npy);
} catch (Error& error) {
  throw error.at(error.has_place() ? concat(path, ", ", error.place()) : path);
}

std::map<std::string, Tensor> read_npz_file(const std::string& path) try {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return read_npz(file->bytes(), file);
} catch (Error& error) {
  throw error.at(error.has_place() ? concat(path, ", ", error.place()) : path);
}

void write_npz_file(const std::vector<std::pair<std::string, Tensor>>& arrays,
                    const std::string& path) {
  NewFile file(path);
  ZipWriter archive(file.out());
  for (const auto& [name, tensor] : arrays) {
    const std::string content = write_npy(tensor);
    archive.add(name + ".npy", std::as_bytes(std::span(content)));
  }
  archive.finish();
  file.finish();
}

}  // namespace tenon::frontends::numpy
