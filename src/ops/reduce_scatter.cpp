#include "ir/assumptions.h"
#include "ops/collective.h"
#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/op_spec.h"
#include "ops/operand_limits.h"

#include <algorithm>

namespace tenon {
namespace {

struct Attrs {
  std::int64_t ranks = 1;
};

ResultTypes infer(const Attrs& attrs, const OperandTypes& in) {
  TensorType y = require_elements(in, "x", reals);
  require_at_least("reduce_scatter", "ranks", attrs.ranks, 1);
  if (y.rank() == 0) throw Error("reduce_scatter: x has no axis to cut along").got(y);
  const Dim extent = y.dims[0];
  y.dims[0] = floor_div(extent, attrs.ranks);
  if (!assume_equal(y.dims[0] * attrs.ranks, extent)) {
    throw Error("reduce_scatter: the first axis does not come out even")
        .expected("a multiple of ", attrs.ranks)
        .got(extent);
  }
  return y;
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  require_rank_count(op, attrs.ranks);
  const Tensor& x = op.tensor("x");
  RankSum sum(ranks_of(op), x.dtype(), static_cast<std::size_t>(x.size()));
  sum.add(x.bytes());
  Shape shape = x.shape();
  shape[0] /= attrs.ranks;
  Tensor y(x.dtype(), shape);
  std::ranges::copy(sum.piece(), y.mutable_bytes().begin());
  op.set("y", std::move(y));
}

void gradient(const Attrs& attrs, Gradient& op) {
  op.add("x", op.build().call("all_gather", {op.upstream("y")}, {{"ranks", attrs.ranks}}));
}

}  // namespace

TENON_DEFINE_OP(reduce_scatter) = OpSpec<Attrs>{
    .name = "reduce_scatter",
    .summary =
        "the sum of every rank's x, added in rank order, cut along the first axis: rank k has part "
        "k",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"ranks", &Attrs::ranks}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = gradient,
    .layout = logical_order(),
    .is_random = true,  // other ranks decide what it gives
};

}  // namespace tenon
