#include "ops/collective.h"

#include <algorithm>

namespace tenon::reduce_scatter_op {
namespace {

ResultTypes infer(const GroupAttrs& attrs, const OperandTypes& in) {
  return part_type("reduce_scatter", attrs, require_group(attrs, in, reals));
}

// Along the first axis parts are pieces of what lies one behind another, as sums are taken.
Tensor evaluate(const GroupAttrs& attrs, const Tensor& x, RankGroup& group) {
  RankSum sum(group, x.dtype(), static_cast<std::size_t>(x.size()));
  sum.add(x.bytes());
  if (attrs.axis > 0) {
    Tensor total(x.dtype(), x.shape());
    sum.take(total.mutable_bytes());
    return own_part(total, attrs, group);
  }
  Shape shape = x.shape();
  shape[0] /= attrs.ranks;
  Tensor y(x.dtype(), shape);
  std::ranges::copy(sum.piece(), y.mutable_bytes().begin());
  return y;
}

}  // namespace

TENON_DEFINE_OP(reduce_scatter) = group_op({
    .name = "reduce_scatter",
    .summary =
        "the sum of every rank's x, added in rank order, cut along `axis`: rank k has part k",
    .infer = infer,
    .evaluate = evaluate,
    .gradient = "all_gather",
});

}  // namespace tenon::reduce_scatter_op
