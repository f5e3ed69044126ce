#include "base/temporary_folder.h"

#include "base/error.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace tenon::inline base {
namespace {

namespace fs = std::filesystem;

int open_folder(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// The owner of a folder holds its lock. A folder that its owner has not locked yet is still empty
// and is kept.
void remove_if_abandoned(const fs::path& path) {
  const int folder = open_folder(path.string());
  if (folder < 0) return;
  struct stat status {};
  std::error_code ignored;
  if (::fstat(folder, &status) == 0 && status.st_uid == ::geteuid() &&
      ::flock(folder, LOCK_EX | LOCK_NB) == 0 && !fs::is_empty(path, ignored) && !ignored) {
    fs::remove_all(path, ignored);
  }
  ::close(folder);
}

}  // namespace

TemporaryFolder::TemporaryFolder(const std::string& purpose) {
  std::error_code failed;
  const fs::path parent = fs::temp_directory_path(failed);
  const std::string beginning = concat("tenon-", purpose, "-");
  std::vector<fs::path> others;
  if (!failed) {
    for (fs::directory_iterator
             entry(parent, fs::directory_options::skip_permission_denied, failed),
         end;
         !failed && entry != end; entry.increment(failed)) {
      if (entry->path().filename().string().rfind(beginning, 0) == 0)
        others.push_back(entry->path());
    }
  }
  for (const fs::path& other : others) remove_if_abandoned(other);
  path_ = (parent.empty() ? fs::path("/tmp") : parent) / (beginning + "XXXXXX");
  if (::mkdtemp(path_.data()) == nullptr) {
    throw Error("cannot make a folder for temporary files", ErrorKind::Device)
        .at(path_)
        .got(std::generic_category().message(errno))
        .hint("TMPDIR says where they may be");
  }
  lock_ = open_folder(path_);
  if (lock_ >= 0) ::flock(lock_, LOCK_EX | LOCK_NB);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace tenon::inline base
