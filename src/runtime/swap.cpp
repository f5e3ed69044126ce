#include "runtime/swap.h"

#include "base/error.h"
#include "base/text.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace tenon::inline runtime {
namespace {

std::string folder() {
  const char* named = std::getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/tmp";
}

Error swap_failed(int error) {
  return Error("the file that values are swapped to failed", ErrorKind::Device)
      .at(folder())
      .got(std::strerror(error))
      .hint("TMPDIR names the folder for it");
}

// Opens an unnamed file: with O_TMPFILE, or by unlinking a temporary file at once.
int open_nameless(const std::string& where) {
  const int file = open(where.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  std::string name = where + "/tenon-swap-XXXXXX";
  const int named = mkstemp(name.data());
  if (named >= 0) unlink(name.c_str());
  return named;
}

std::uint64_t file_bytes(const Program& program, std::span<const std::uint64_t> buffer_bytes) {
  std::uint64_t end = 0;
  for (const Program::Transfer& transfer : program.transfers) {
    end = std::max(end, transfer.file_offset + buffer_bytes[transfer.buffer]);
  }
  return end;
}

template <class Piece>
int in_pieces(std::uint64_t bytes, Piece piece) {
  for (std::uint64_t done = 0; done < bytes;) {
    const ssize_t count = piece(done, bytes - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : EIO;
    done += static_cast<std::uint64_t>(count);
  }
  return 0;
}

}  // namespace

SwapFile::SwapFile(std::uint64_t bytes) : file_(open_nameless(folder())) {
  if (file_ < 0) throw swap_failed(errno);
  // All of it now: a full disk is met before a run and not within.
  const int error = bytes == 0 ? 0 : posix_fallocate(file_, 0, static_cast<off_t>(bytes));
  if (error == 0 || error == EOPNOTSUPP || error == EINVAL) return;
  close(file_);
  throw swap_failed(error).expected("room for ", format_bytes(bytes));
}

SwapFile::~SwapFile() { close(file_); }

int SwapFile::write(const std::byte* data, std::uint64_t bytes, std::uint64_t offset) noexcept {
  return in_pieces(bytes, [&](std::uint64_t done, std::uint64_t left) {
    return pwrite(file_, data + done, left, static_cast<off_t>(offset + done));
  });
}

int SwapFile::read(std::byte* data, std::uint64_t bytes, std::uint64_t offset) noexcept {
  return in_pieces(bytes, [&](std::uint64_t done, std::uint64_t left) {
    return pread(file_, data + done, left, static_cast<off_t>(offset + done));
  });
}

double measured_swap_bytes_per_s() {
  using Clock = std::chrono::steady_clock;
  constexpr std::uint64_t kBytes = 32 << 20;
  SwapFile file(kBytes);
  std::vector<std::byte> data(kBytes, std::byte{1});
  double slowest = 1e12;
  for (const bool is_out : {true, false}) {
    const auto begin = Clock::now();
    const int error =
        is_out ? file.write(data.data(), kBytes, 0) : file.read(data.data(), kBytes, 0);
    if (error != 0) throw swap_failed(error);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    slowest = std::min(slowest, static_cast<double>(kBytes) / std::max(seconds, 1e-9));
  }
  return slowest;
}

Swapper::Swapper(const Program& program, std::span<const std::uint64_t> buffer_bytes)
    : file_(file_bytes(program, buffer_bytes)) {
  for (const Program::Transfer& transfer : program.transfers) {
    copies_.push_back({buffer_bytes[transfer.buffer], program.buffers[transfer.buffer].offset,
                       transfer.file_offset, transfer.begin_step, transfer.is_out});
    deadlines_.push_back({transfer.end_step, copies_.size()});
  }
  std::ranges::stable_sort(deadlines_, {}, &Deadline::step);
  thread_ = std::thread([this] { work(); });
}

Swapper::~Swapper() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  is_begun_.notify_one();
  thread_.join();
}

void Swapper::begin_run(std::byte* arena) {
  const std::lock_guard lock(mutex_);
  arena_ = arena;
  begun_ = met_ = released_ = done_ = 0;
  failure_ = 0;
}

void Swapper::before(std::size_t step) {
  const std::size_t begun = begun_;
  while (begun_ < copies_.size() && copies_[begun_].begin_step <= step) ++begun_;
  std::size_t wanted = 0;
  for (; met_ < deadlines_.size() && deadlines_[met_].step <= step; ++met_) {
    wanted = std::max(wanted, deadlines_[met_].done);
  }
  if (begun == begun_ && wanted == 0) return;
  std::unique_lock lock(mutex_);
  released_ = begun_;
  if (begun != begun_) is_begun_.notify_one();
  is_done_.wait(lock, [&] { return done_ >= wanted || failure_ != 0; });
  if (failure_ != 0) throw swap_failed(failure_);
}

void Swapper::abandon() noexcept {
  std::unique_lock lock(mutex_);
  is_done_.wait(lock, [&] { return done_ >= released_ || failure_ != 0; });
}

void Swapper::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    is_begun_.wait(lock, [&] { return is_ending_ || (done_ < released_ && failure_ == 0); });
    if (is_ending_) return;
    const Copy copy = copies_[done_];
    std::byte* data = arena_ + copy.arena_offset;
    lock.unlock();
    const int error = copy.is_out ? file_.write(data, copy.bytes, copy.file_offset)
                                  : file_.read(data, copy.bytes, copy.file_offset);
    lock.lock();
    if (error != 0) failure_ = error;
    ++done_;
    is_done_.notify_all();
  }
}

}  // namespace tenon::inline runtime
