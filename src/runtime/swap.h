#pragma once

#include "program/program.h"

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace tenon {

/// Bytes in a file that has no name, in the folder for temporary files (`TMPDIR`): gone with the
/// process.
class SwapFile {
 public:
  /// Throws Error (Device) where there can be no such file, or the folder cannot hold so much.
  explicit SwapFile(std::uint64_t bytes);
  ~SwapFile();
  SwapFile(const SwapFile&) = delete;

  /// Gives the system's error, or 0.
  int write(const std::byte* data, std::uint64_t bytes, std::uint64_t offset) noexcept;
  int read(std::byte* data, std::uint64_t bytes, std::uint64_t offset) noexcept;

 private:
  int file_ = -1;
};

/// Bytes a second that go to such a file and come back: the slower of the two. Takes some tenths of
/// a second.
double measured_swap_bytes_per_s();

/// Carries out a program's transfers in a thread of its own, beside the steps.
class Swapper {
 public:
  /// `buffer_bytes` by buffer of the program.
  Swapper(const Program& program, std::span<const std::uint64_t> buffer_bytes);
  ~Swapper();
  Swapper(const Swapper&) = delete;

  void begin_run(std::byte* arena);
  /// Begins what begins before this step, and waits for what has to be done by then; a number
  /// behind the last step is the end of the run. Throws Error (Device) where the file failed.
  void before(std::size_t step);
  /// Waits for what is under way, of a run that did not come to its end.
  void abandon() noexcept;

 private:
  struct Copy {
    std::uint64_t bytes, arena_offset, file_offset;
    std::uint32_t begin_step;
    bool is_out;
  };
  struct Deadline {
    std::uint32_t step;
    std::size_t done;  // so many copies are done by then
  };
  void work();

  std::vector<Copy> copies_;         // in the order in which they begin
  std::vector<Deadline> deadlines_;  // by step
  std::size_t begun_ = 0, met_ = 0;
  SwapFile file_;
  std::byte* arena_ = nullptr;

  std::mutex mutex_;
  std::condition_variable is_begun_, is_done_;
  std::size_t released_ = 0, done_ = 0;  // guarded
  bool is_ending_ = false;
  int failure_ = 0;
  std::thread thread_;
};

}  // namespace tenon
