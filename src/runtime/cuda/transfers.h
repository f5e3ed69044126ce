#pragma once

#include "program/program.h"
#include "runtime/bound_shapes.h"
#include "runtime/cuda/driver.h"

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

namespace tenon::cuda {

/// Memory of the host's that stays where it is, so that the device copies from and to it by itself;
/// given back at the end.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(const PinnedMemory&) = delete;
  ~PinnedMemory();
  /// Throws Error (OutOfMemory), naming what it is for. Less than is held is no change.
  void allocate(std::uint64_t bytes, const std::string& purpose);
  /// Tells whether there is so much; where not, nothing is held.
  bool try_allocate(std::uint64_t bytes);
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

/// Carries out a program's transfers beside its steps: from the arena to pinned memory of the
/// host's and back, each way on a stream of its own. Events put them in order with the steps, so
/// that a graph that is recorded holds them too.
class Transfers {
 public:
  Transfers() = default;
  Transfers(const Transfers&) = delete;
  ~Transfers();

  /// Throws Error (OutOfMemory) where the host has no memory to pin.
  void prepare(const Program& program, const BoundShapes& shapes, Address arena);
  void begin_run();
  /// On the stream that the steps are on, before this one is: begins what begins there, and waits
  /// for what has to be done by then. Tells whether it had anything to do.
  bool before(std::size_t step, Stream steps);
  /// Waits for all that is left, on that stream.
  void end_run(Stream steps);
  std::uint64_t pinned_bytes() const { return host_.bytes(); }

 private:
  struct Copy {
    Address arena = 0;
    std::uint64_t host_offset = 0, bytes = 0;
    std::uint32_t begin_step = 0, end_step = 0;
    bool is_out = false;
    /// a copy the other way of the same bytes of the host's
    std::optional<std::size_t> behind = {};
    Event done = nullptr;
  };
  static std::size_t lane_of(const Copy& copy) { return copy.is_out ? 0 : 1; }
  void forget();
  void begin(std::size_t step, Stream steps);
  bool wait(std::size_t step, Stream steps);

  PinnedMemory host_;
  /// out and back
  std::array<Stream, 2> lanes_ = {};
  Event fork_ = nullptr;
  /// in the order in which they begin
  std::vector<Copy> copies_;
  /// the same by the step that they have to be done before
  std::vector<std::size_t> by_end_;
  std::size_t begun_ = 0, ended_ = 0;
  /// by lane: copies below this number are waited for
  std::array<std::size_t, 2> awaited_ = {};
};

/// Bytes a second that go from the device to pinned memory of the host's, and that come back: the
/// slower of the two. Takes some hundredths of a second. Throws Error (Device) where there is no
/// GPU.
double measured_link_bytes_per_s();

}  // namespace tenon::cuda
