#pragma once

#include "base/communicator.h"
#include "ir/dtype.h"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace tenon::inline ops {

/// Memory for exchange and addition between ranks: host or device memory.
class RankMemory {
 public:
  virtual ~RankMemory() = default;
  /// Allocates zeros with the alignment that the memory's kernels need.
  virtual std::shared_ptr<std::byte> allocate(std::size_t bytes) = 0;
  /// Allocates memory that other ranks can access, if the platform supports it.
  virtual std::shared_ptr<std::byte> allocate_visible(std::size_t bytes) { return allocate(bytes); }
  /// Synchronous. Either side may be host memory.
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  /// y = ((terms[0] + terms[1]) + terms[2]) + …, rounded to the type at each sum; y does not alias
  /// a term. Synchronous.
  virtual void add_in_order(DType dtype, std::span<std::byte> y,
                            std::span<const std::span<const std::byte>> terms) = 0;
};

/// Host memory.
RankMemory& host_memory();

/// Receive buffer that consecutive sums share.
class RankScratch {
 public:
  explicit RankScratch(RankMemory& memory) : memory_(memory) {}
  /// Returns the same address until a larger size is requested.
  std::byte* at_least(std::size_t bytes);
  std::size_t bytes() const { return bytes_; }

 private:
  RankMemory& memory_;
  std::shared_ptr<std::byte> place_;
  std::size_t bytes_ = 0;
};

/// All-reduce as reduce-scatter and all-gather, with additions in rank order: the result does not
/// depend on message timing, and N ranks give the bits of one rank that adds the same N parts in
/// order. Each rank sums one piece of the elements; then all pieces are gathered: as many bytes as
/// a ring all-reduce sends.
class RankSum {
 public:
  /// Both references must outlive it; `ranks` exchanges data in `memory`. Without `scratch` it
  /// allocates its own.
  RankSum(Communicator& ranks, DType dtype, std::size_t count, RankMemory& memory = host_memory(),
          std::shared_ptr<RankScratch> scratch = nullptr);

  /// Adds one more part per rank, in rank order. `part` is this rank's part.
  void add(std::span<const std::byte> part);
  /// Gathers the sum on every rank; the next part begins a new sum.
  void take(std::span<std::byte> total);
  /// Ends the sum without gathering; `piece()` stays valid.
  void end() { is_empty_ = true; }
  /// The piece of the sum that this rank has computed. A shorter last piece is padded with zeros.
  std::span<const std::byte> piece() const { return {sum_.get(), piece_bytes_}; }

 private:
  void add_terms(std::vector<std::span<const std::byte>> terms, std::byte* free);
  bool is_shown() const;
  struct Range {
    std::size_t begin = 0, size = 0;  // bytes
  };
  Range range_of(int rank) const;
  std::size_t taken_bytes() const {
    return piece_bytes_ * static_cast<std::size_t>(ranks_.size() - 1);
  }

  Communicator& ranks_;
  RankMemory& memory_;
  DType dtype_;
  std::size_t count_, piece_bytes_;
  bool is_empty_ = true;
  std::shared_ptr<std::byte> sum_;        // this rank's piece
  std::shared_ptr<RankScratch> scratch_;  // received pieces, then the previous sum
};

}  // namespace tenon::inline ops
