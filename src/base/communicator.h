#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tenon {

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
};

}  // namespace tenon
