#include "ops/collective.h"

namespace tenon::all_gather_op {
namespace {

ResultTypes infer(const GroupAttrs& attrs, const OperandTypes& in) {
  TensorType y = require_group(attrs, in, numbers | bools);
  Dim& extent = y.dims[static_cast<std::size_t>(attrs.axis)];
  extent = extent * attrs.ranks;
  return y;
}

Tensor evaluate(const GroupAttrs& attrs, const Tensor& x, RankGroup& group) {
  return gathered(x, attrs, group);
}

}  // namespace

TENON_DEFINE_OP(all_gather) = group_op({
    .name = "all_gather",
    .summary = "every rank's x, joined in rank order along `axis`, on every rank",
    .infer = infer,
    .evaluate = evaluate,
    .gradient = "reduce_scatter",
});

}  // namespace tenon::all_gather_op
