#pragma once

#include "program/program.h"
#include "runtime/bound_shapes.h"
#include "runtime/cuda/driver.h"

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

namespace tenon::inline runtime::cuda {

/// Pinned host memory for asynchronous copies; freed by the destructor.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(const PinnedMemory&) = delete;
  ~PinnedMemory();
  /// Throws Error (OutOfMemory), naming the purpose. Keeps existing memory if it suffices.
  void allocate(std::uint64_t bytes, const std::string& purpose);
  /// Returns false, with no memory allocated, if the host has too little.
  bool try_allocate(std::uint64_t bytes);
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

/// Executes a program's offload transfers concurrently with its steps: from the arena to pinned
/// host memory and back, one stream per direction. Events order them with the steps, so that
/// captured graphs include them.
class Transfers {
 public:
  Transfers() = default;
  Transfers(const Transfers&) = delete;
  ~Transfers();

  /// Throws Error (OutOfMemory) if the host cannot pin enough memory.
  void prepare(const Program& program, const BoundShapes& shapes, Address arena);
  void begin_run();
  /// Called on the stream of the steps before each step: starts the transfers due, and waits for
  /// those that the step needs. Returns true if it enqueued anything.
  bool before(std::size_t step, Stream steps);
  /// Makes the stream wait for all remaining transfers.
  void end_run(Stream steps);
  std::uint64_t pinned_bytes() const { return host_.bytes(); }

 private:
  struct Copy {
    Address arena = 0;
    std::uint64_t host_offset = 0, bytes = 0;
    std::uint32_t begin_step = 0, end_step = 0;
    bool is_out = false;
    /// Preceding copy in the other direction over the same host bytes.
    std::optional<std::size_t> predecessor = {};
    Event done = nullptr;
  };
  static std::size_t lane_of(const Copy& copy) { return copy.is_out ? 0 : 1; }
  void forget();
  void begin(std::size_t step, Stream steps);
  bool wait(std::size_t step, Stream steps);

  PinnedMemory host_;
  /// Streams to the host and back.
  std::array<Stream, 2> lanes_ = {};
  Event fork_ = nullptr;
  /// In order of their start.
  std::vector<Copy> copies_;
  /// Sorted by the step that needs the copy.
  std::vector<std::size_t> by_end_;
  std::size_t begun_ = 0, ended_ = 0;
  /// By direction: number of copies already waited for.
  std::array<std::size_t, 2> awaited_ = {};
};

/// Measures the transfer rate between device and pinned host memory in bytes per second: the slower
/// direction. Takes some hundredths of a second. Throws Error (Device) without a GPU.
double measured_link_bytes_per_s();

}  // namespace tenon::inline runtime::cuda
