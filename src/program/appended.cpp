#include "program/appended.h"

#include "base/error.h"
#include "base/new_file.h"
#include "base/text.h"
#include "program/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

namespace tenon::inline program {
namespace {

constexpr std::uint64_t kTrailerPage = 4096;
constexpr std::array<char, 16> kTrailerMagic = {'t', 'e', 'n', 'o', 'n', ' ', 'p', 'r',
                                                'o', 'g', 'r', 'a', 'm', ' ', '1', '\n'};

// Trailer at the end of the file.
struct Trailer {
  std::uint64_t offset = 0;          // start of the program
  std::uint64_t bytes = 0;           // size of the program in this file
  std::uint64_t constant_bytes = 0;  // size of the constants in another file
  std::uint64_t name_bytes = 0;      // length of that file's name, which precedes the trailer
  std::array<char, 16> magic = kTrailerMagic;
};

Error unreadable(const std::string& path) {
  return Error("cannot read the program", ErrorKind::Usage).at(path).got(std::strerror(errno));
}
Error damaged_program(const std::string& path, const char* how) {
  return Error("the program file is damaged").at(path).got(how).hint("compile the model again");
}

class AppendedFile {
 public:
  explicit AppendedFile(const std::string& path)
      : number_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat status {};
    if (number_ < 0) throw unreadable(path);
    if (fstat(number_, &status) != 0) {
      const Error error = unreadable(path);
      close(number_);
      throw error;
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
  }
  AppendedFile(const AppendedFile&) = delete;
  ~AppendedFile() { close(number_); }
  int number() const { return number_; }
  std::uint64_t size() const { return size_; }
  void read(void* target, std::uint64_t bytes, std::uint64_t offset,
            const std::string& path) const {
    if (pread(number_, target, bytes, static_cast<off_t>(offset)) != static_cast<ssize_t>(bytes))
      throw damaged_program(path, "it is cut short");
  }

 private:
  int number_;
  std::uint64_t size_ = 0;
};

// An address range into which parts of files are mapped one after another.
class Pages {
 public:
  explicit Pages(std::uint64_t bytes) : bytes_(bytes) {
    void* place =
        mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) {
      throw Error("no memory to map the program and its constants", ErrorKind::OutOfMemory)
          .got(format_bytes(bytes_));
    }
    data_ = static_cast<std::byte*>(place);
  }
  Pages(const Pages&) = delete;
  ~Pages() { munmap(data_, bytes_); }

  void map(const AppendedFile& file, std::uint64_t offset, std::uint64_t bytes, std::uint64_t place,
           const std::string& path) {
    if (bytes == 0) return;
    void* mapped = mmap(data_ + place, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, file.number(),
                        static_cast<off_t>(offset));
    if (mapped == MAP_FAILED) throw unreadable(path);
    madvise(mapped, bytes, MADV_HUGEPAGE);  // for the same reason as in `read_program`
  }
  std::span<const std::byte> bytes() const { return {data_, bytes_}; }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace

void write_appended(const Program& program, std::span<const std::byte> carrier,
                    const std::string& path, const std::string& constants_path) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(path).parent_path();
  Trailer trailer;
  const std::string name = fs::path(constants_path).filename().string();
  if (!constants_path.empty()) {
    // The loader searches the folder of the shared object, wherever that is, so the file must be
    // there.
    if (fs::path(constants_path).has_parent_path() &&
        fs::path(constants_path).parent_path() != folder) {
      throw Error("the constants lie in the folder of the shared object", ErrorKind::Usage)
          .expected((folder / name).string())
          .got(constants_path);
    }
    trailer.name_bytes = name.size();
  }
  trailer.offset = (carrier.size() + kTrailerPage - 1) / kTrailerPage * kTrailerPage;
  NewFile file(path);
  const std::string gap(trailer.offset - carrier.size(), '\0');
  file.out().write(reinterpret_cast<const char*>(carrier.data()),
                   static_cast<std::streamsize>(carrier.size()));
  file.out() << gap;
  if (constants_path.empty()) {
    const ProgramBytes written = write_program(program, file.out(), file.out());
    trailer.bytes = written.head + written.constants;
  } else {
    NewFile constants((folder / name).string());
    const ProgramBytes written = write_program(program, file.out(), constants.out());
    trailer.bytes = written.head;
    trailer.constant_bytes = written.constants;
    constants.finish();
  }
  file.out() << name;
  file.out().write(reinterpret_cast<const char*>(&trailer), sizeof trailer);
  file.finish();
}

Program read_appended(const std::string& path) {
  const AppendedFile file(path);
  Trailer trailer;
  if (file.size() < sizeof trailer)
    throw damaged_program(path, "it is too short to hold a program");
  file.read(&trailer, sizeof trailer, file.size() - sizeof trailer, path);
  if (trailer.magic != kTrailerMagic) {
    throw Error("there is no program in this file", ErrorKind::Usage)
        .at(path)
        .hint("`tenon compile MODEL -o FILE.so` writes one that has it");
  }
  const std::uint64_t end = file.size() - sizeof trailer;
  if (trailer.offset % kTrailerPage != 0 || trailer.offset > end ||
      trailer.bytes > end - trailer.offset ||
      trailer.name_bytes != end - trailer.offset - trailer.bytes || trailer.name_bytes > 4096 ||
      (trailer.name_bytes > 0 && trailer.bytes % kTrailerPage != 0)) {
    throw damaged_program(path, "its end does not say where the program is");
  }
  if (trailer.bytes == 0) throw damaged_program(path, "an empty program");
  std::uint64_t total = trailer.bytes;
  std::string constants_path;
  std::unique_ptr<AppendedFile> constants;
  if (trailer.name_bytes > 0) {
    std::string name(trailer.name_bytes, '\0');
    file.read(name.data(), name.size(), trailer.offset + trailer.bytes, path);
    if (name.find('/') != std::string::npos || name.find('\0') != std::string::npos || name == "..")
      throw damaged_program(path, "its constants lie elsewhere");
    constants_path = (std::filesystem::path(path).parent_path() / name).string();
    constants = std::make_unique<AppendedFile>(constants_path);
    if (constants->size() != trailer.constant_bytes)
      throw damaged_program(constants_path, "another size than the program says");
    total += trailer.constant_bytes;
  }
  const auto mapping = std::make_shared<Pages>(total);
  mapping->map(file, trailer.offset, trailer.bytes, 0, path);
  if (constants) mapping->map(*constants, 0, trailer.constant_bytes, trailer.bytes, constants_path);
  try {
    Program program = parse_program(mapping->bytes(), mapping);
    program.is_mapped = true;
    return program;
  } catch (Error& error) {
    if (!error.has_place()) error.at(path);
    throw;
  }
}

}  // namespace tenon::inline program
