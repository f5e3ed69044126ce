#pragma once

#include "base/communicator.h"
#include "ir/dtype.h"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace tenon {

/// Memory that ranks exchange from and add up in: the processor's, or a device's.
class RankMemory {
 public:
  virtual ~RankMemory() = default;
  /// Zeros, aligned for whoever computes there.
  virtual std::shared_ptr<std::byte> allocate(std::size_t bytes) = 0;
  /// The same, of which the other ranks see what is shown them, where they can.
  virtual std::shared_ptr<std::byte> allocate_visible(std::size_t bytes) { return allocate(bytes); }
  /// Done when it returns. Either side may be the processor's.
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  /// y = ((terms[0] + terms[1]) + terms[2]) + …, rounded to the type at each sum; y is none of
  /// them. Done when it returns.
  virtual void add_in_order(DType dtype, std::span<std::byte> y,
                            std::span<const std::span<const std::byte>> terms) = 0;
};

/// The processor's.
RankMemory& host_memory();

/// Memory for what comes in from other ranks, which sums that are taken one after another share.
class RankScratch {
 public:
  explicit RankScratch(RankMemory& memory) : memory_(memory) {}
  /// The same place until more is asked for.
  std::byte* at_least(std::size_t bytes);
  std::size_t bytes() const { return bytes_; }

 private:
  RankMemory& memory_;
  std::shared_ptr<std::byte> place_;
  std::size_t bytes_ = 0;
};

/// Sums over ranks in rank order, so that they do not depend on how messages travel: N ranks give
/// the bits of one rank that adds the same N parts one after another. Each rank adds up a piece of
/// the elements; then all pieces go to all: as many bytes as a ring of partial sums would send.
class RankSum {
 public:
  /// Both outlive it; `ranks` exchanges what lies in `memory`. Without `scratch` it has its own.
  RankSum(Communicator& ranks, DType dtype, std::size_t count, RankMemory& memory = host_memory(),
          std::shared_ptr<RankScratch> scratch = nullptr);

  /// Adds one more part of every rank, rank after rank. `part` is what this rank gives.
  void add(std::span<const std::byte> part);
  /// The sum so far, on every rank; the next part begins a new one.
  void take(std::span<std::byte> total);
  /// The same for whoever wants no more than `piece()`.
  void end() { is_empty_ = true; }
  /// The piece of the sum that this rank has added up; it stays where it is. Where it is shorter
  /// than others, zeros follow it.
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
  std::shared_ptr<RankScratch> scratch_;  // those of the others; the sum so far, when more comes
};

}  // namespace tenon
