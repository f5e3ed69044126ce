#include "frontends/mapped_file.h"

#include "base/error.h"
#include "base/text.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tenon::frontends {
namespace {

class FileHandle {
 public:
  explicit FileHandle(int number) : number_(number) {}
  FileHandle(FileHandle&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileHandle() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

// Without O_NONBLOCK, opening a named pipe would wait for its writer.
constexpr int kReadFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

Error cannot_open(const std::string& path, int reason) {
  return Error(concat("cannot open '", path, "': ", std::strerror(reason)));
}

// Fallback for kernels without openat2: refuses all symbolic links.
FileHandle walk_beneath(FileHandle folder, const std::vector<std::string>& parts) {
  for (std::size_t k = 0; k < parts.size() && folder.is_open(); ++k) {
    const bool is_last = k + 1 == parts.size();
    const int flags = is_last ? kReadFlags : O_RDONLY | O_CLOEXEC | O_DIRECTORY;
    folder = FileHandle(openat(folder.number(), parts[k].c_str(), flags | O_NOFOLLOW));
  }
  return folder;
}

FileHandle open_in(FileHandle folder, const std::string& location,
                   const std::vector<std::string>& parts) {
  open_how how{};
  how.flags = kReadFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const long number = syscall(SYS_openat2, folder.number(), location.c_str(), &how, sizeof(how));
  if (number >= 0) return FileHandle(static_cast<int>(number));
  const bool is_missing_call = errno == ENOSYS || errno == EPERM || errno == EINVAL;
  return is_missing_call ? walk_beneath(std::move(folder), parts) : FileHandle(-1);
}

}  // namespace

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  if (file_ >= 0) close(file_);
}

std::shared_ptr<MappedFile> MappedFile::map(int file, const std::string& shown_path) {
  struct stat status {};
  if (fstat(file, &status) != 0) throw cannot_open(shown_path, errno);
  if (S_ISDIR(status.st_mode)) throw Error(concat("'", shown_path, "' is a folder, not a file"));
  if (!S_ISREG(status.st_mode)) throw Error(concat("'", shown_path, "' is not a regular file"));
  const auto size = static_cast<std::size_t>(status.st_size);
  std::span<const std::byte> bytes;
  if (size > 0) {
    void* start = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (start == MAP_FAILED && errno == ENOMEM) {
      throw Error("no memory to map a file", ErrorKind::OutOfMemory)
          .at(shown_path)
          .got(format_bytes(size), " wanted");
    }
    if (start == MAP_FAILED) throw cannot_open(shown_path, errno);
    bytes = {static_cast<const std::byte*>(start), size};
  }
  return std::shared_ptr<MappedFile>(new MappedFile(bytes));
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  FileHandle file(::open(path.c_str(), kReadFlags));
  if (!file.is_open()) throw cannot_open(path, errno);
  std::shared_ptr<MappedFile> mapped = map(file.number(), path);
  mapped->path_ = path;
  mapped->file_ = file.release();
  return mapped;
}

void MappedFile::forget_pages() const {
  // Advice only: if the system ignores it, the pages stay in memory.
  if (!bytes_.empty())
    madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(),
            MADV_DONTNEED);  // NOLINT: read-only
}

void MappedFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  TENON_ASSERT(file_ >= 0, "the file was kept open");
  while (!to.empty()) {
    const ssize_t count = pread(file_, to.data(), to.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(concat("cannot read '", path_, "': ", std::strerror(errno)));
    if (count == 0) throw Error(concat("'", path_, "' became shorter while it was read"));
    offset += static_cast<std::uint64_t>(count);
    to = to.subspan(static_cast<std::size_t>(count));
  }
}

std::shared_ptr<const MappedFile> MappedFile::open_beneath(const std::string& folder,
                                                           const std::string& location) {
  const auto refuse = [&](std::string_view reason) {
    return Error(concat("refused to open '", location, "': ", reason))
        .expected("a path to a file beneath the model's own folder");
  };
  if (location.empty()) throw refuse("the path is empty");
  if (location.find('\0') != std::string::npos) throw refuse("the path holds a null character");
  if (location.front() == '/') throw refuse("the path is absolute");
  std::vector<std::string> parts;
  for (std::string& part : split(location, '/')) {
    if (part == "..") throw refuse("the path has '..' in it");
    if (!part.empty() && part != ".") parts.push_back(std::move(part));
  }
  if (parts.empty()) throw refuse("the path names no file");

  const std::string top = folder.empty() ? "." : folder;
  FileHandle opened_folder(::open(top.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  if (!opened_folder.is_open()) throw cannot_open(top, errno);
  const FileHandle file = open_in(std::move(opened_folder), location, parts);
  if (!file.is_open()) {
    if (errno == EXDEV || errno == ELOOP) {
      throw refuse("a symbolic link leads out of the model's folder");
    }
    throw cannot_open(top + "/" + location, errno);
  }
  return map(file.number(), location);
}

}  // namespace tenon::frontends
