#pragma once

#include "base/rank_group.h"
#include "ir/tensor.h"
#include "ops/attr_field.h"
#include "ops/elements.h"
#include "ops/evaluation.h"
#include "ops/gradient.h"
#include "ops/op_spec.h"
#include "ops/rank_sum.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// What there is to know of an op whose result depends on which rank runs it, or on the others.
struct CollectiveTraits {
  /// what ranks give is added up
  bool adds = false;
  /// each rank has a part of the result
  bool leaves_parts = false;
  /// ranks' parts become one tensor on all of them
  bool joins_parts = false;
  /// every rank has all that it needs
  bool sends_nothing = false;
};
/// What an op's own file says of it: `TENON_DEFINE_COLLECTIVE(all_reduce) = {.adds = true};`
#define TENON_DEFINE_COLLECTIVE(id)              \
  extern const CollectiveTraits collective_##id; \
  const CollectiveTraits collective_##id

/// Nothing for an op that is no such.
std::optional<CollectiveTraits> collective_traits(const OpDef& op);
inline bool is_collective(const OpDef& op) { return collective_traits(op).has_value(); }

/// The ranks of an evaluation: one where it has none.
Communicator& ranks_of(Evaluation& op);

/// The group of ranks that this one meets: `size` of them, `stride` apart, so that ranks that form
/// a mesh meet by rows or by columns. Throws Error where the graph is for another number of ranks.
RankGroup group_of(Evaluation& op, std::int64_t size, std::int64_t stride);

/// Of ops that cut or join tensors along an axis, a part for each rank of a group.
struct GroupAttrs {
  std::int64_t ranks = 1, stride = 1, axis = 0;
  /// Of ops that join or cut elements one behind another, whatever the axes: the shape of what is
  /// joined; whether to cut so. The last parts are filled up with zeros.
  std::vector<std::int64_t> shape = {};
  bool is_flat = false;
};
/// An op of x and such a group: all but what it computes, which its file says.
struct GroupOp {
  const char* name = "";
  /// what each rank has
  std::string summary = "";
  ResultTypes (*infer)(const GroupAttrs& attrs, const OperandTypes& in) = nullptr;
  Tensor (*evaluate)(const GroupAttrs& attrs, const Tensor& x, RankGroup& group) = nullptr;
  /// the op that takes what flows back
  const char* gradient = "";
  /// attributes
  std::vector<AttrField<GroupAttrs>> more = {};
};
OpSpec<GroupAttrs> group_op(const GroupOp& op);
/// The type of x. Asks that it has the axis, and that there are such groups.
TensorType require_group(const GroupAttrs& attrs, const OperandTypes& in, Elements elements);
/// What one rank has of it. Throws Error where the axis does not come out even.
TensorType part_type(std::string_view op, const GroupAttrs& attrs, TensorType whole);
/// This rank's part of a tensor.
Tensor own_part(const Tensor& whole, const GroupAttrs& attrs, const Communicator& group);
/// The parts of all ranks, joined.
Tensor gathered(const Tensor& part, const GroupAttrs& attrs, Communicator& group);

/// Asks that there is such a rank; that it is not this one.
void require_rank(std::string_view op, std::int64_t rank, const Communicator& ranks);
void require_other_rank(std::string_view op, std::int64_t rank, const Communicator& ranks);

}  // namespace tenon
