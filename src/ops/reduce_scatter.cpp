#include "ops/definition/operand_limits.h"
#include "ops/families/collective.h"

#include <algorithm>

namespace tenon::inline ops::reduce_scatter_op {
namespace {

ResultTypes infer(const GroupAttrs& attrs, const OperandTypes& in) {
  if (attrs.is_flat) {
    const TensorType& x = require_elements(in, "x", reals);
    require_at_least("reduce_scatter", "ranks", attrs.ranks, 1);
    return TensorType{
        x.dtype, {floor_div(product(x.dims) + Dim(attrs.ranks - 1), attrs.ranks)}, {}};
  }
  return part_type("reduce_scatter", attrs, require_group(attrs, in, reals));
}

// Shards of the first axis are contiguous, like the pieces of RankSum.
Tensor evaluate(const GroupAttrs& attrs, const Tensor& x, RankGroup& group) {
  RankSum sum(group, x.dtype(), static_cast<std::size_t>(x.size()));
  sum.add(x.bytes());
  if (attrs.is_flat) {
    Tensor y(x.dtype(), {(x.size() + attrs.ranks - 1) / attrs.ranks});
    std::ranges::copy(sum.piece(), y.mutable_bytes().begin());
    return y;
  }
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

TENON_DEFINE_COLLECTIVE(reduce_scatter) = {.adds = true, .leaves_parts = true};

TENON_DEFINE_OP(reduce_scatter) = group_op({
    .name = "reduce_scatter",
    .summary =
        "the sum of every rank's x, added in rank order, cut along `axis`: rank k has part k",
    .infer = infer,
    .evaluate = evaluate,
    .gradient = "all_gather",
    .more = {{"flat", &GroupAttrs::is_flat}},
});

}  // namespace tenon::inline ops::reduce_scatter_op
