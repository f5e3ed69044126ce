#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tenon::inline base {

/// Location of a rank's bytes for other ranks: region (counted from 1), file and offset. Region 0:
/// not accessible.
struct MemoryWindow {
  std::uint64_t region = 0, file = 0, offset = 0, bytes = 0;
};

/// Communicator between ranks of a program: threads of a process, or processes under MPI.
/// Collective operations: every rank calls the same ones in the same order, from one thread at a
/// time.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// All-to-all: sends `given[k]` to rank k and receives from rank k into `taken[k]`, whose size
  /// must match; empty spans send no message. The own part is copied. Throws Error (Device) if a
  /// rank is gone.
  virtual void exchange(std::span<const std::span<const std::byte>> given,
                        std::span<const std::span<std::byte>> taken) = 0;

  /// Gathers `mine` of every rank into `all`, by rank; sizes must match.
  virtual void all_gather(std::span<const std::byte> mine,
                          std::span<const std::span<std::byte>> all);
  /// Gathers texts of any length.
  std::vector<std::string> all_gather(const std::string& mine);
  void broadcast(std::span<std::byte> bytes, int root);
  void send(std::span<const std::byte> bytes, int to);
  void receive(std::span<std::byte> bytes, int from);
  /// Blocks until every rank has called it.
  void barrier();

  /// Allocates zeroed memory that other ranks can read if they share a machine; else returns null.
  virtual std::shared_ptr<std::byte> allocate_visible(std::size_t bytes);
  using Shown = std::vector<std::span<const std::byte>>;
  /// Exposes memory of every rank to all others, in place of messages with its content; each rank
  /// passes the same number of spans. The memory stays readable until `hide`. Returns nullopt on
  /// all ranks if one of them exposes memory that others cannot access.
  std::optional<std::vector<Shown>> show(const Shown& mine);
  /// Blocks until every rank has read the exposed memory.
  void hide();

  /// True if ranks can access each other's memory; equal on all ranks.
  virtual bool may_see() const { return false; }
  /// Describe own bytes for other ranks, and map the bytes of another rank. Throw Error (Device) if
  /// mapping fails.
  virtual MemoryWindow window_of(std::span<const std::byte> mine) const;
  virtual std::span<const std::byte> seen(int rank, const MemoryWindow& window);
};

}  // namespace tenon::inline base
