#include "ops/families/collective.h"

namespace tenon::inline ops::rank_slice_op {
namespace {

ResultTypes infer(const GroupAttrs& attrs, const OperandTypes& in) {
  return part_type("rank_slice", attrs, require_group(attrs, in, numbers | bools));
}

Tensor evaluate(const GroupAttrs& attrs, const Tensor& x, RankGroup& group) {
  return own_part(x, attrs, group);
}

}  // namespace

TENON_DEFINE_COLLECTIVE(rank_slice) = {.leaves_parts = true, .sends_nothing = true};

TENON_DEFINE_OP(rank_slice) = group_op({
    .name = "rank_slice",
    .summary = "part k of x along `axis`, on rank k, where every rank has the same x",
    .infer = infer,
    .evaluate = evaluate,
    .gradient = "all_gather",
});

}  // namespace tenon::inline ops::rank_slice_op
