#pragma once

#include "base/rank_group.h"
#include "ir/tensor.h"
#include "ops/definition/attr_field.h"
#include "ops/definition/elements.h"
#include "ops/definition/evaluation.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/families/rank_sum.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::inline ops {

/// Traits of an op whose result depends on the executing rank or on the other ranks.
struct CollectiveTraits {
  /// Sums the operands of the ranks.
  bool adds = false;
  /// Each rank receives a shard of the result.
  bool leaves_parts = false;
  /// Concatenates the ranks' shards into one tensor on every rank.
  bool joins_parts = false;
  /// Local: needs no communication.
  bool sends_nothing = false;
};
/// Defines the traits in an op's file: `TENON_DEFINE_COLLECTIVE(all_reduce) = {.adds = true};`
#define TENON_DEFINE_COLLECTIVE(id)              \
  extern const CollectiveTraits collective_##id; \
  const CollectiveTraits collective_##id

/// Returns nullopt for an op that is not a collective.
std::optional<CollectiveTraits> collective_traits(const OpDef& op);
inline bool is_collective(const OpDef& op) { return collective_traits(op).has_value(); }

/// Returns the communicator of an evaluation, or a single-rank communicator without one.
Communicator& ranks_of(Evaluation& op);

/// Returns the group of this rank: `size` ranks with distance `stride`, so that a mesh of ranks has
/// groups along rows or columns. Throws Error if the graph was built for another number of ranks.
RankGroup group_of(Evaluation& op, std::int64_t size, std::int64_t stride);

/// Attributes of ops that split or concatenate tensors along an axis, one shard per rank of a
/// group.
struct GroupAttrs {
  std::int64_t ranks = 1, stride = 1, axis = 0;
  /// For ops on flattened elements: the shape of the whole tensor, and whether to split the flat
  /// elements instead of an axis. The last shards are padded with zeros.
  std::vector<std::int64_t> shape = {};
  bool is_flat = false;
};
/// Specification of a collective op with operand x; the op's file provides its computation.
struct GroupOp {
  const char* name = "";
  /// Describes each rank's shard.
  std::string summary = "";
  ResultTypes (*infer)(const GroupAttrs& attrs, const OperandTypes& in) = nullptr;
  Tensor (*evaluate)(const GroupAttrs& attrs, const Tensor& x, RankGroup& group) = nullptr;
  /// Op that computes the gradient.
  const char* gradient = "";
  /// Additional attributes.
  std::vector<AttrField<GroupAttrs>> more = {};
};
OpSpec<GroupAttrs> group_op(const GroupOp& op);
/// Returns the type of x. Requires that it has the axis and that the group is valid.
TensorType require_group(const GroupAttrs& attrs, const OperandTypes& in, Elements elements);
/// Returns the shard type of one rank. Throws Error if the axis is not divisible.
TensorType part_type(std::string_view op, const GroupAttrs& attrs, TensorType whole);
/// Returns this rank's shard of a tensor.
Tensor own_part(const Tensor& whole, const GroupAttrs& attrs, const Communicator& group);
/// Concatenates the shards of all ranks.
Tensor gathered(const Tensor& part, const GroupAttrs& attrs, Communicator& group);

/// Throws Error unless the rank exists, or unless it is another rank.
void require_rank(std::string_view op, std::int64_t rank, const Communicator& ranks);
void require_other_rank(std::string_view op, std::int64_t rank, const Communicator& ranks);

}  // namespace tenon::inline ops
