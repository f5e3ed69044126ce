#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tenon {

/// Bytes of one rank's as others find them: in which of its regions, counted from 1, and where.
/// Region 0: others cannot.
struct MemoryWindow {
  std::uint64_t region = 0, file = 0, offset = 0, bytes = 0;
};

/// Ranks that run the same program and exchange bytes: threads of a process, processes under MPI.
/// Every rank calls the same operations in the same order; one thread of a rank at a time.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Sends `given[k]` to rank k and takes what rank k sends to this one into `taken[k]`, which has
  /// its size; what is empty on both sides is no message. Its own share is copied. Throws Error
  /// (Device) where a rank is gone.
  virtual void exchange(std::span<const std::span<const std::byte>> given,
                        std::span<const std::span<std::byte>> taken) = 0;

  /// `mine` of every rank, in rank order, into `all`; by rank, what each gives has its size there.
  virtual void all_gather(std::span<const std::byte> mine,
                          std::span<const std::span<std::byte>> all);
  /// The same for texts of any length.
  std::vector<std::string> all_gather(const std::string& mine);
  void broadcast(std::span<std::byte> bytes, int root);
  void send(std::span<const std::byte> bytes, int to);
  void receive(std::span<std::byte> bytes, int from);
  /// Returns when every rank has called it.
  void barrier();

  /// Memory of zeros that the other ranks can read, where they share a machine; else null.
  virtual std::shared_ptr<std::byte> allocate_visible(std::size_t bytes);
  using Shown = std::vector<std::span<const std::byte>>;
  /// What every rank shows of its memory, by rank, in place of messages that carry it; as many
  /// things on each. It may be read until `hide` is called. Nothing, on all ranks alike, where one
  /// of them shows what others cannot see.
  std::optional<std::vector<Shown>> show(const Shown& mine);
  /// Returns when every rank has read what was shown.
  void hide();

  /// Whether ranks may see each other's memory at all; the same on all of them.
  virtual bool may_see() const { return false; }
  /// How others find bytes of this rank's; what this one finds in memory of another's. Throws
  /// Error (Device) where that cannot be mapped.
  virtual MemoryWindow window_of(std::span<const std::byte> mine) const;
  virtual std::span<const std::byte> seen(int rank, const MemoryWindow& window);
};

}  // namespace tenon
