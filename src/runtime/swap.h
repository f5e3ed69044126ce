#pragma once

#include "program/program.h"

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace tenon::inline runtime {

/// An anonymous temporary file (in `TMPDIR`) that disappears with the process.
class SwapFile {
 public:
  /// Throws Error (Device) if the file cannot be created or the folder lacks space.
  explicit SwapFile(std::uint64_t bytes);
  ~SwapFile();
  SwapFile(const SwapFile&) = delete;

  /// Returns the system's error code, or 0.
  int write(const std::byte* data, std::uint64_t bytes, std::uint64_t offset) noexcept;
  int read(std::byte* data, std::uint64_t bytes, std::uint64_t offset) noexcept;

 private:
  int file_ = -1;
};

/// Measures the transfer rate to and from such a file in bytes per second: the slower direction.
/// Takes some tenths of a second.
double measured_swap_bytes_per_s();

/// Executes a program's offload transfers on its own thread, concurrently with the steps.
class Swapper {
 public:
  /// `buffer_bytes` is indexed by buffer of the program.
  Swapper(const Program& program, std::span<const std::uint64_t> buffer_bytes);
  ~Swapper();
  Swapper(const Swapper&) = delete;

  void begin_run(std::byte* arena);
  /// Starts the transfers due before this step, and waits for those that the step needs; a number
  /// past the last step ends the run. Throws Error (Device) if the file failed.
  void before(std::size_t step);
  /// Waits for pending transfers of a run that failed.
  void abandon() noexcept;

 private:
  struct Copy {
    std::uint64_t bytes, arena_offset, file_offset;
    std::uint32_t begin_step;
    bool is_out;
  };
  struct Deadline {
    std::uint32_t step;
    std::size_t done;  // number of copies that must be complete
  };
  void work();

  std::vector<Copy> copies_;         // in order of their start
  std::vector<Deadline> deadlines_;  // by step
  std::size_t begun_ = 0, met_ = 0;
  SwapFile file_;
  std::byte* arena_ = nullptr;

  std::mutex mutex_;
  std::condition_variable is_begun_, is_done_;
  std::size_t released_ = 0, done_ = 0;  // guarded by `mutex_`
  bool is_ending_ = false;
  int failure_ = 0;
  std::thread thread_;
};

}  // namespace tenon::inline runtime
