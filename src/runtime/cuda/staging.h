#pragma once

#include "runtime/cuda/transfers.h"

#include <cstdint>
#include <deque>
#include <vector>

namespace tenon::inline runtime::cuda {

/// Staged copies between pageable host memory and the device, one direction, through a ring buffer
/// of pinned memory: the DMA engine transfers one piece while the host copies the next. A piece's
/// space is reused after its transfer is complete.
class Staging {
 public:
  static constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;
  static constexpr std::uint64_t kPieceBytes = std::uint64_t{512} << 10;

  explicit Staging(std::uint64_t most_bytes = kMostBytes, std::uint64_t piece_bytes = kPieceBytes)
      : most_bytes_(most_bytes), piece_bytes_(piece_bytes) {}
  Staging(const Staging&) = delete;
  ~Staging();

  /// Ring-buffer space of a copy.
  static std::uint64_t room(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }
  /// Allocates pinned memory for this many bytes in flight, up to the limit of the constructor.
  /// Without pinned memory the copies go through the driver's own staging buffers, synchronously.
  void reserve(std::uint64_t bytes);
  /// True if this many bytes can be started without waiting.
  bool has_room_for(std::uint64_t bytes) const;

  /// On return `source` may be overwritten.
  void to_device(Address target, const void* source, std::uint64_t bytes, Stream stream);
  /// `target` is valid after `finish`.
  void to_host(void* target, Address source, std::uint64_t bytes, Stream stream);
  /// Waits for all pending copies.
  void finish();
  /// Drops pending copies of an idle stream.
  void abandon();
  std::uint64_t pinned_bytes() const { return memory_.bytes(); }

 private:
  struct Piece {
    /// Range in the ring buffer.
    std::uint64_t begin, end;
    /// Host target; null for copies to the device.
    void* target;
    std::uint64_t bytes;
    Event done;
  };
  std::uint64_t most_of_piece(std::uint64_t bytes) const;
  std::byte* place_for(std::uint64_t bytes);
  void note(void* target, std::uint64_t bytes, Stream stream);
  void finish_first();
  Event new_event();

  std::uint64_t most_bytes_, piece_bytes_;
  PinnedMemory memory_;
  /// Start of the next piece.
  std::uint64_t next_ = 0;
  /// Pending pieces in order of submission.
  std::deque<Piece> under_way_;
  std::vector<Event> idle_;
};

}  // namespace tenon::inline runtime::cuda
