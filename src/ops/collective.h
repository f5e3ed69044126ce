#pragma once

#include "base/rank_group.h"
#include "ir/tensor.h"
#include "ops/attr_field.h"
#include "ops/elements.h"
#include "ops/evaluation.h"
#include "ops/gradient.h"

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

/// The ranks of an evaluation: one where it has none.
Communicator& ranks_of(Evaluation& op);

/// The group of ranks that this one meets: `size` of them, `stride` apart, so that ranks that form
/// a mesh meet by rows or by columns. Throws Error where the graph is for another number of ranks.
RankGroup group_of(Evaluation& op, std::int64_t size, std::int64_t stride);

/// Of ops that cut or join tensors along an axis, a part for each rank of a group.
struct GroupAttrs {
  std::int64_t ranks = 1, stride = 1, axis = 0;
};
std::vector<AttrField<GroupAttrs>> group_fields();
/// The type of x. Asks that it has the axis, and that there are such groups.
TensorType require_group(const GroupAttrs& attrs, const OperandTypes& in, Elements elements);
/// What one rank has of it. Throws Error where the axis does not come out even.
TensorType part_type(std::string_view op, const GroupAttrs& attrs, TensorType whole);
/// A node of such an op with the same group.
Var call_in_group(Gradient& op, const char* name, const GroupAttrs& attrs);
/// This rank's part of a tensor.
Tensor own_part(const Tensor& whole, const GroupAttrs& attrs, const Communicator& group);
/// The parts of all ranks, joined.
Tensor gathered(const Tensor& part, const GroupAttrs& attrs, Communicator& group);

/// Asks that there is such a rank; that it is not this one.
void require_rank(std::string_view op, std::int64_t rank, const Communicator& ranks);
void require_other_rank(std::string_view op, std::int64_t rank, const Communicator& ranks);

}  // namespace tenon
