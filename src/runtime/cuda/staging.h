#pragma once

#include "runtime/cuda/transfers.h"

#include <cstdint>
#include <deque>
#include <vector>

namespace tenon::cuda {

/// Copies between ordinary memory of the host's and the device, one way, by pieces in pinned memory
/// in between: the device fetches or brings a piece by itself, while the host copies the next one
/// and others compute. A ring: a piece's place is taken again once the device is done with it.
class Staging {
 public:
  static constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;
  static constexpr std::uint64_t kPieceBytes = std::uint64_t{512} << 10;

  explicit Staging(std::uint64_t most_bytes = kMostBytes, std::uint64_t piece_bytes = kPieceBytes)
      : most_bytes_(most_bytes), piece_bytes_(piece_bytes) {}
  Staging(const Staging&) = delete;
  ~Staging();

  /// What `bytes` take in the ring.
  static std::uint64_t room(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }
  /// Pins memory for so much at once, at most what it was made with. Where the host has none to
  /// pin, copies go without: the driver has pieces of its own, for which it waits.
  void reserve(std::uint64_t bytes);
  /// Whether so much more can be under way without waiting.
  bool has_room_for(std::uint64_t bytes) const;

  /// When it is back nothing is read of `source` any more.
  void to_device(Address target, const void* source, std::uint64_t bytes, Stream stream);
  /// What comes is in `target` after `finish`.
  void to_host(void* target, Address source, std::uint64_t bytes, Stream stream);
  /// Waits for all that is under way.
  void finish();
  /// Forgets it, of a stream on which nothing runs any more.
  void abandon();
  std::uint64_t pinned_bytes() const { return memory_.bytes(); }

 private:
  struct Piece {
    /// in the ring
    std::uint64_t begin, end;
    /// of the host's; null of what goes to the device
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
  /// where the next piece goes
  std::uint64_t next_ = 0;
  /// in the order in which they began
  std::deque<Piece> under_way_;
  std::vector<Event> idle_;
};

}  // namespace tenon::cuda
