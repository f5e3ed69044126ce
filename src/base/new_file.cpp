#include "base/new_file.h"

#include "base/error.h"
#include "base/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <streambuf>
#include <vector>

namespace tenon::inline base {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = 64 << 10, kLargestWrite = std::size_t{1} << 30;
constexpr std::string_view kEnding = ".part";
constexpr std::size_t kRandomDigits = 16, kLongestName = 255;
constexpr int kTries = 100;

// Returns the file descriptor that the system's own links refer to (/dev/stdout, /dev/fd/N), which
// must be followed.
std::optional<int> open_file_of(const std::string& path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (path.rfind(folder, 0) != 0) continue;
    const std::optional<std::int64_t> number = parse_integer(path.substr(folder.size()));
    if (number && *number >= 0 && *number <= INT_MAX) return static_cast<int>(*number);
  }
  return std::nullopt;
}

bool is_device_or_pipe(const std::string& path) {
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status) &&
         !fs::is_symlink(status);
}

fs::path folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

// Prefix of all temporary names for a file: ".model.onnx." for model.onnx.
std::string beginning_of_parts(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  return concat(".", name.substr(0, kLongestName - kRandomDigits - kEnding.size() - 2), ".");
}

bool is_part_of(const std::string& name, const std::string& beginning) {
  if (name.size() != beginning.size() + kRandomDigits + kEnding.size()) return false;
  if (name.rfind(beginning, 0) != 0 || !name.ends_with(kEnding)) return false;
  const std::string digits = name.substr(beginning.size(), kRandomDigits);
  return digits.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string random_digits() {
  std::random_device source;
  std::string digits;
  for (std::size_t k = 0; k < kRandomDigits; ++k) digits += "0123456789abcdef"[source() % 16];
  return digits;
}

// The writer of a temporary file holds its lock; a lockable file is abandoned.
void remove_if_abandoned(const std::string& part) {
  const int file = ::open(part.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return;
  struct stat opened {
  }, named{};
  if (::fstat(file, &opened) == 0 && S_ISREG(opened.st_mode) &&
      ::flock(file, LOCK_EX | LOCK_NB) == 0 && ::lstat(part.c_str(), &named) == 0 &&
      named.st_ino == opened.st_ino && named.st_dev == opened.st_dev) {
    ::unlink(part.c_str());
  }
  ::close(file);
}

void remove_abandoned_parts(const std::string& path) {
  const std::string beginning = beginning_of_parts(path), folder = folder_of(path).string();
  DIR* entries = ::opendir(folder.c_str());
  if (entries == nullptr) return;
  std::vector<std::string> parts;
  while (const dirent* entry = ::readdir(entries)) {
    if (is_part_of(entry->d_name, beginning)) parts.push_back(concat(folder, "/", entry->d_name));
  }
  ::closedir(entries);
  for (const std::string& part : parts) remove_if_abandoned(part);
}

// Creates and locks a new file. Another process may remove it before it is locked; then the next
// name is tried.
int open_part(const std::string& path, std::string& part) {
  for (int k = 0; k < kTries; ++k) {
    part = (folder_of(path) / concat(beginning_of_parts(path), random_digits(), kEnding)).string();
    const int file =
        ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file < 0 && errno == EEXIST) continue;
    if (file < 0) return -1;
    const bool is_lost = ::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat status {};
    if (!is_lost && ::fstat(file, &status) == 0 && status.st_nlink > 0) return file;
    ::close(file);
    ::unlink(part.c_str());
  }
  errno = EEXIST;
  return -1;
}

}  // namespace

Error cannot_write(const std::string& path, int reason) {
  const bool is_device = reason == ENOSPC || reason == EDQUOT || reason == EIO;
  return Error(concat("cannot write '", path, "'"),
               is_device ? ErrorKind::Device : ErrorKind::Usage)
      .got(std::generic_category().message(reason));
}

// Stream buffer that keeps the system's error of a failed write, unlike a standard file stream.
class NewFile::Buffer : public std::streambuf {
 public:
  explicit Buffer(int file) : file_(file) { setp(bytes_.data(), bytes_.data() + bytes_.size()); }
  Buffer(const Buffer&) = delete;
  ~Buffer() override { close(); }

  int reason() const { return reason_; }
  // Closes the file once and keeps it (and its lock) through a duplicate descriptor, because some
  // file systems report errors only on close.
  void settle() {
    const int held = ::fcntl(file_, F_DUPFD_CLOEXEC, 0);
    if (held < 0) return;
    close();
    file_ = held;
  }
  void close() {
    if (file_ < 0) return;
    if (::close(file_) != 0 && reason_ == 0) reason_ = errno;
    file_ = -1;
  }

 protected:
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) {
      *pptr() = traits_type::to_char_type(c);
      pbump(1);
    }
    return traits_type::not_eof(c);
  }

  // Writes large blocks directly: the size of a write determines the page size of the cached file.
  std::streamsize xsputn(const char* data, std::streamsize size) override {
    if (size == 0) return 0;  // data may be null
    if (size <= epptr() - pptr()) {
      std::memcpy(pptr(), data, static_cast<std::size_t>(size));
      pbump(static_cast<int>(size));
      return size;
    }
    return sync() == 0 && write(data, static_cast<std::size_t>(size)) ? size : 0;
  }

  int sync() override {
    const bool is_written = write(pbase(), static_cast<std::size_t>(pptr() - pbase()));
    setp(bytes_.data(), bytes_.data() + bytes_.size());
    return is_written ? 0 : -1;
  }

 private:
  bool write(const char* data, std::size_t size) {
    while (size > 0 && reason_ == 0) {
      const ssize_t written = ::write(file_, data, std::min(size, kLargestWrite));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        reason_ = errno;
        break;
      }
      data += written;
      size -= static_cast<std::size_t>(written);
    }
    return reason_ == 0;
  }

  int file_;
  int reason_ = 0;  // the first error
  std::array<char, kBufferBytes> bytes_{};
};

NewFile::NewFile(std::string path) : path_(std::move(path)), out_(nullptr) {
  int file = -1;
  if (const std::optional<int> open_file = open_file_of(path_)) {
    file = ::fcntl(*open_file, F_DUPFD_CLOEXEC, 0);  // continues at its current offset
  } else if (is_device_or_pipe(path_)) {
    file = ::open(path_.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  } else if (std::error_code ignored;
             path_.empty() || path_.back() == '/' || fs::is_directory(path_, ignored)) {
    errno = path_.empty() ? ENOENT : EISDIR;
  } else {
    remove_abandoned_parts(path_);
    file = open_part(path_, part_);
  }
  if (file < 0) {
    part_.clear();
    throw cannot_write(path_, errno);
  }
  buffer_ = std::make_unique<Buffer>(file);
  out_.rdbuf(buffer_.get());
}

NewFile::~NewFile() {
  if (!part_.empty()) ::unlink(part_.c_str());  // before closing the file releases the lock
}

void NewFile::finish() {
  out_.flush();
  buffer_->settle();
  int reason = buffer_->reason();
  // Renames while locked, so that other processes do not take the file for abandoned.
  if (reason == 0 && !part_.empty()) {
    if (::rename(part_.c_str(), path_.c_str()) == 0) {
      part_.clear();
    } else {
      reason = errno;
    }
  }
  buffer_->close();
  if (reason != 0) throw cannot_write(path_, reason);
}

}  // namespace tenon::inline base
