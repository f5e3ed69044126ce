#include "distributed/shards.h"

#include "base/error.h"
#include "models/inputs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

namespace tenon::distributed {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kTouchEvery = 1s;
constexpr double kStale_s = 10;

// Uses the file system's clock, since clocks of machines may differ.
double seconds_untouched(const std::string& path, const std::string& now_path) {
  struct stat claimed = {}, now = {};
  if (stat(path.c_str(), &claimed) != 0) return 0;
  const int file = open(now_path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0) return 0;
  futimens(file, nullptr);
  const bool is_read = fstat(file, &now) == 0;
  close(file);
  unlink(now_path.c_str());
  if (!is_read) return 0;
  return static_cast<double>(now.st_mtim.tv_sec - claimed.st_mtim.tv_sec) +
         1e-9 * static_cast<double>(now.st_mtim.tv_nsec - claimed.st_mtim.tv_nsec);
}

}  // namespace

Shards::Shards(std::string input, std::string output)
    : input_(std::move(input)), output_(std::move(output)) {
  std::error_code reason;
  for (const fs::directory_entry& entry : fs::directory_iterator(input_, reason)) {
    if (entry.path().extension() == ".npz") names_.push_back(entry.path().filename().string());
  }
  if (reason)
    throw Error("a folder of data cannot be read", ErrorKind::Usage)
        .at(input_)
        .got(reason.message());
  if (names_.empty())
    throw Error("a folder of data has no .npz files", ErrorKind::Usage).at(input_);
  std::ranges::sort(names_);
  if (fs::equivalent(fs::path(input_), fs::path(output_), reason))
    throw Error("results would replace the data", ErrorKind::Usage).at(output_);
  models::make_folder(output_);
  begin_ = static_cast<std::size_t>(getpid()) % names_.size();
  keeper_ = std::thread([this] { keep_alive(); });
}

Shards::~Shards() {
  {
    const std::scoped_lock lock(mutex_);
    is_closed_ = true;
  }
  changed_.notify_all();
  keeper_.join();
  for (const std::string& name : held_) unlink(claim_path(name).c_str());
}

std::string Shards::input_path(const std::string& name) const {
  return (fs::path(input_) / name).string();
}
std::string Shards::result_path(const std::string& name) const {
  return (fs::path(output_) / name).string();
}
std::string Shards::claim_path(const std::string& name) const {
  return (fs::path(output_) / concat(".", name, ".claim")).string();
}

bool Shards::is_done(const std::string& name) const { return fs::exists(result_path(name)); }

std::size_t Shards::done_count() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(names_, [&](const std::string& name) { return is_done(name); }));
}

void Shards::pause() { std::this_thread::sleep_for(200ms); }

// Exclusive creation of the file decides: only one process succeeds.
bool Shards::claim(const std::string& name) {
  const std::string path = claim_path(name);
  const auto make = [&] {
    const int file = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (file >= 0) {
      close(file);
      return true;
    }
    if (errno == EEXIST) return false;
    throw Error("a shard cannot be claimed", ErrorKind::Usage)
        .at(path)
        .got(std::error_code(errno, std::generic_category()).message());
  };
  if (make()) return true;
  const std::string own = concat(path, ".", getpid());
  if (seconds_untouched(path, own) < kStale_s) return false;
  // Renames the stale claim before making a new one: of several processes that find it stale, one
  // succeeds.
  if (rename(path.c_str(), own.c_str()) != 0) return false;
  unlink(own.c_str());
  return make();
}

std::optional<std::string> Shards::try_take() {
  for (std::size_t k = 0; k < names_.size(); ++k) {
    const std::string& name = names_[(begin_ + k) % names_.size()];
    if (is_done(name) || !claim(name)) continue;
    if (is_done(name)) {  // by its previous holder
      unlink(claim_path(name).c_str());
      continue;
    }
    const std::scoped_lock lock(mutex_);
    held_.insert(name);
    begin_ = (begin_ + k + 1) % names_.size();
    return name;
  }
  return std::nullopt;
}

void Shards::release(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  held_.erase(name);
  unlink(claim_path(name).c_str());
}

void Shards::keep_alive() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kTouchEvery, [&] { return is_closed_; })) {
    for (const std::string& name : held_) utimensat(AT_FDCWD, claim_path(name).c_str(), nullptr, 0);
  }
}

}  // namespace tenon::distributed
