#include "ops/families/collective.h"

#include "base/error.h"
#include "base/lockstep.h"
#include "ir/assumptions.h"
#include "ops/definition/operand_limits.h"
#include "ops/families/tensor_parts.h"
#include "tenon/builder.h"

#include <map>

namespace tenon::inline ops {

// Each op's file defines its traits.
#define TENON_COLLECTIVES(X) \
  X(all_gather) X(all_reduce) X(broadcast) X(rank_slice) X(receive) X(reduce_scatter) X(send)

#define TENON_DECLARE(id)                          \
  namespace id##_op {                              \
    extern const CollectiveTraits collective_##id; \
  }
TENON_COLLECTIVES(TENON_DECLARE)

std::optional<CollectiveTraits> collective_traits(const OpDef& op) {
#define TENON_ENTRY(id) {#id, &id##_op::collective_##id},
  static const std::map<std::string_view, const CollectiveTraits*> all = {
      TENON_COLLECTIVES(TENON_ENTRY)};
  const auto found = all.find(op.name);
  if (found == all.end()) return std::nullopt;
  return *found->second;
}

Communicator& ranks_of(Evaluation& op) {
  if (op.communicator == nullptr) {
    static const std::unique_ptr<Communicator> alone = one_rank();  // stateless
    return *alone;
  }
  return *op.communicator;
}

RankGroup group_of(Evaluation& op, std::int64_t size, std::int64_t stride) {
  Communicator& all = ranks_of(op);
  const auto ranks = static_cast<int>(size), apart = static_cast<int>(stride);
  if (RankGroup::divides_evenly(all.size(), ranks, apart)) return {all, ranks, apart};
  throw Error(concat(op.op->name, ": the graph is for another number of ranks"), ErrorKind::Usage)
      .expected(size * stride)
      .got(all.size());
}

OpSpec<GroupAttrs> group_op(const GroupOp& op) {
  std::vector<AttrField<GroupAttrs>> fields = {
      {"ranks", &GroupAttrs::ranks}, {"stride", &GroupAttrs::stride}, {"axis", &GroupAttrs::axis}};
  fields.insert(fields.end(), op.more.begin(), op.more.end());
  return {
      .name = op.name,
      .summary = concat(op.summary, "; of groups of `ranks`, `stride` apart"),
      .operands = {"x"},
      .results = {"y"},
      .attrs = std::move(fields),
      .infer = op.infer,
      .evaluate =
          [evaluate = op.evaluate](const GroupAttrs& attrs, Evaluation& made) {
            RankGroup group = group_of(made, attrs.ranks, attrs.stride);
            made.set("y", evaluate(attrs, made.tensor("x"), group));
          },
      .gradient =
          [back = op.gradient](const GroupAttrs& attrs, Gradient& made) {
            std::vector<Attr> same = {
                {"ranks", attrs.ranks}, {"stride", attrs.stride}, {"axis", attrs.axis}};
            if (!attrs.shape.empty()) same.emplace_back("flat", true);
            if (attrs.is_flat) {
              const TensorType& x = made.build().type(made.operand("x")).tensor();
              if (!all_constant(x.dims)) {
                throw Error(
                    "reduce_scatter: the gradient of flat pieces is for extents that are numbers",
                    ErrorKind::Unsupported)
                    .got("x: ", x);
              }
              same.emplace_back("shape", constants(x.dims));
            }
            made.add("x", made.build().call(back, {made.upstream("y")}, same));
          },
      .layout = logical_order(),
      .is_random = true,  // this rank and the others determine the result
  };
}

TensorType require_group(const GroupAttrs& attrs, const OperandTypes& in, Elements elements) {
  const TensorType& x = require_elements(in, "x", elements);
  require_at_least(in.op_name(), "ranks", attrs.ranks, 1);
  require_at_least(in.op_name(), "stride", attrs.stride, 1);
  if (attrs.axis >= 0 && attrs.axis < static_cast<std::int64_t>(x.rank())) return x;
  throw Error(concat(in.op_name(), ": x has no axis ", attrs.axis)).got(x);
}

TensorType part_type(std::string_view op, const GroupAttrs& attrs, TensorType whole) {
  Dim& extent = whole.dims[static_cast<std::size_t>(attrs.axis)];
  const Dim part = floor_div(extent, attrs.ranks);
  if (!assume_equal(part * attrs.ranks, extent)) {
    throw Error(concat(op, ": axis ", attrs.axis, " does not come out even"))
        .expected("a multiple of ", attrs.ranks)
        .got(extent);
  }
  extent = part;
  return whole;
}

Tensor own_part(const Tensor& whole, const GroupAttrs& attrs, const Communicator& group) {
  const auto axis = static_cast<std::size_t>(attrs.axis);
  const std::int64_t extent = whole.shape()[axis] / attrs.ranks;
  return slice_of(whole, axis, extent * group.rank(), extent);
}

Tensor gathered(const Tensor& part, const GroupAttrs& attrs, Communicator& group) {
  std::vector<Tensor> parts;
  for (std::int64_t k = 0; k < attrs.ranks; ++k) parts.emplace_back(part.dtype(), part.shape());
  std::vector<std::span<std::byte>> places;
  for (Tensor& one : parts) places.push_back(one.mutable_bytes());
  group.all_gather(part.bytes(), places);
  return join_along("all_gather", parts, static_cast<std::size_t>(attrs.axis));
}

void require_rank(std::string_view op, std::int64_t rank, const Communicator& ranks) {
  if (rank < ranks.size()) return;
  throw Error(concat(op, ": there is no rank ", rank), ErrorKind::Usage)
      .expected("0 to ", ranks.size() - 1);
}

void require_other_rank(std::string_view op, std::int64_t rank, const Communicator& ranks) {
  require_rank(op, rank, ranks);
  if (rank == ranks.rank())
    throw Error(concat(op, ": a rank has no messages for itself"), ErrorKind::Usage).got(rank);
}

}  // namespace tenon::inline ops
