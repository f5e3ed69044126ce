#include "ops/collective.h"
#include "ops/op_spec.h"

#include <algorithm>

namespace tenon {
namespace {

ResultTypes infer(const GroupAttrs& attrs, const OperandTypes& in) {
  return part_type("reduce_scatter", attrs, require_group(attrs, in, reals));
}

// Along the first axis parts are pieces of what lies one behind another, as sums are taken.
void evaluate(const GroupAttrs& attrs, Evaluation& op) {
  RankGroup group = group_of(op, attrs.ranks, attrs.stride);
  const Tensor& x = op.tensor("x");
  RankSum sum(group, x.dtype(), static_cast<std::size_t>(x.size()));
  sum.add(x.bytes());
  if (attrs.axis > 0) {
    Tensor total(x.dtype(), x.shape());
    sum.take(total.mutable_bytes());
    op.set("y", own_part(total, attrs, group));
    return;
  }
  Shape shape = x.shape();
  shape[0] /= attrs.ranks;
  Tensor y(x.dtype(), shape);
  std::ranges::copy(sum.piece(), y.mutable_bytes().begin());
  op.set("y", std::move(y));
}

void gradient(const GroupAttrs& attrs, Gradient& op) {
  op.add("x", call_in_group(op, "all_gather", attrs));
}

}  // namespace

TENON_DEFINE_OP(reduce_scatter) = OpSpec<GroupAttrs>{
    .name = "reduce_scatter",
    .summary =
        "the sum of every rank's x, added in rank order, cut along `axis`: rank k has part k; of "
        "groups of `ranks`, `stride` apart",
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
