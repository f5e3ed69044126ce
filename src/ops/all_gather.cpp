#include "base/error.h"
#include "ir/assumptions.h"
#include "ops/families/collective.h"

#include <algorithm>

namespace tenon::inline ops::all_gather_op {
namespace {

ResultTypes infer(const GroupAttrs& attrs, const OperandTypes& in) {
  TensorType y = require_group(attrs, in, numbers | bools);
  if (attrs.shape.empty()) {
    Dim& extent = y.dims[static_cast<std::size_t>(attrs.axis)];
    extent = extent * attrs.ranks;
    return y;
  }
  const std::int64_t count = checked_element_count(attrs.shape);
  const Dim piece = (count + attrs.ranks - 1) / attrs.ranks;
  if (y.rank() != 1 || !assume_equal(y.dims[0], piece)) {
    throw Error("all_gather: pieces do not come to the shape")
        .expected("x: ", TensorType{y.dtype, {piece}, {}})
        .got("x: ", y);
  }
  y.dims.assign(attrs.shape.begin(), attrs.shape.end());
  return y;
}

Tensor evaluate(const GroupAttrs& attrs, const Tensor& x, RankGroup& group) {
  const Tensor all = gathered(x, attrs, group);
  if (attrs.shape.empty()) return all;
  Tensor y(x.dtype(), attrs.shape);
  std::ranges::copy(all.bytes().first(y.byte_size()), y.mutable_bytes().begin());
  return y;
}

}  // namespace

TENON_DEFINE_COLLECTIVE(all_gather) = {.joins_parts = true};

TENON_DEFINE_OP(all_gather) = group_op({
    .name = "all_gather",
    .summary =
        "every rank's x, joined in rank order along `axis`, on every rank; with `shape`, pieces of "
        "a tensor of that shape, whose elements are concatenated",
    .infer = infer,
    .evaluate = evaluate,
    .gradient = "reduce_scatter",
    .more = {{"shape", &GroupAttrs::shape}},
});

}  // namespace tenon::inline ops::all_gather_op
