#include "ops/collective.h"
#include "ops/op_spec.h"

namespace tenon {
namespace {

ResultTypes infer(const GroupAttrs& attrs, const OperandTypes& in) {
  return part_type("rank_slice", attrs, require_group(attrs, in, numbers | bools));
}

void evaluate(const GroupAttrs& attrs, Evaluation& op) {
  const RankGroup group = group_of(op, attrs.ranks, attrs.stride);
  op.set("y", own_part(op.tensor("x"), attrs, group));
}

void gradient(const GroupAttrs& attrs, Gradient& op) {
  op.add("x", call_in_group(op, "all_gather", attrs));
}

}  // namespace

TENON_DEFINE_OP(rank_slice) = OpSpec<GroupAttrs>{
    .name = "rank_slice",
    .summary =
        "part k of x along `axis`, on rank k, where every rank has the same x; of groups of "
        "`ranks`, `stride` apart",
    .operands = {"x"},
    .results = {"y"},
    .attrs = group_fields(),
    .infer = infer,
    .evaluate = evaluate,
    .gradient = gradient,
    .layout = logical_order(),
    .is_random = true,  // which rank runs it decides what it gives
};

}  // namespace tenon
