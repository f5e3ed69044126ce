#pragma once

#include "base/communicator.h"
#include "ir/tensor.h"
#include "ops/evaluation.h"

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace tenon {

/// Sums over ranks in rank order, so that they do not depend on how messages travel: N ranks give
/// the bits of one rank that adds the same N parts one after another. Each rank adds up a piece of
/// the elements; then all pieces go to all.
class RankSum {
 public:
  RankSum(Communicator& ranks, DType dtype, std::size_t count);

  /// Adds one more part of every rank, rank after rank. `part` is what this rank gives.
  void add(std::span<const std::byte> part);
  /// The sum so far, on every rank; the next part begins a new one.
  void take(std::span<std::byte> total);
  /// The same for whoever wants no more than `piece()`.
  void end() { is_empty_ = true; }
  /// The piece of the sum that this rank has added up; it stays where it is.
  std::span<const std::byte> piece() const { return sum_; }

 private:
  struct Range {
    std::size_t begin = 0, size = 0;  // bytes
  };
  Range range_of(int rank) const;

  Communicator& ranks_;
  DType dtype_;
  std::size_t count_;
  bool is_empty_ = true;
  std::vector<std::byte> sum_, others_;  // this rank's piece; those of the others, as they come in
};

/// Whether an op's result depends on other ranks.
bool is_collective(const OpDef& op);

/// y += x, rounded to the type at each element.
void add_elements(DType dtype, std::span<std::byte> y, std::span<const std::byte> x);

/// The ranks of an evaluation: one where it has none. Throws Error where a graph for `count` ranks
/// runs on another number.
Communicator& ranks_of(Evaluation& op);
void require_rank_count(Evaluation& op, std::int64_t count);
/// Asks that there is such a rank; that it is not this one.
void require_rank(std::string_view op, std::int64_t rank, const Communicator& ranks);
void require_other_rank(std::string_view op, std::int64_t rank, const Communicator& ranks);

}  // namespace tenon
