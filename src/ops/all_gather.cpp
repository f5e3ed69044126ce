#include "ops/collective.h"
#include "ops/op_spec.h"

namespace tenon {
namespace {

ResultTypes infer(const GroupAttrs& attrs, const OperandTypes& in) {
  TensorType y = require_group(attrs, in, numbers | bools);
  Dim& extent = y.dims[static_cast<std::size_t>(attrs.axis)];
  extent = extent * attrs.ranks;
  return y;
}

void evaluate(const GroupAttrs& attrs, Evaluation& op) {
  RankGroup group = group_of(op, attrs.ranks, attrs.stride);
  op.set("y", gathered(op.tensor("x"), attrs, group));
}

void gradient(const GroupAttrs& attrs, Gradient& op) {
  op.add("x", call_in_group(op, "reduce_scatter", attrs));
}

}  // namespace

TENON_DEFINE_OP(all_gather) = OpSpec<GroupAttrs>{
    .name = "all_gather",
    .summary =
        "every rank's x, joined in rank order along `axis`, on every rank; of groups of `ranks`, "
        "`stride` apart",
    .operands = {"x"},
    .results = {"y"},
    .attrs = group_fields(),
    .infer = infer,
    .evaluate = evaluate,
    .gradient = gradient,
    .layout = logical_order(),
    .is_random = true,  // other ranks decide what it gives
};

}  // namespace tenon
