#include "ops/collective.h"
#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/op_spec.h"
#include "ops/operand_limits.h"

namespace tenon {
namespace {

struct Attrs {
  std::int64_t ranks = 1;
};

ResultTypes infer(const Attrs& attrs, const OperandTypes& in) {
  TensorType y = require_elements(in, "x", numbers | bools);
  require_at_least("all_gather", "ranks", attrs.ranks, 1);
  if (y.rank() == 0) throw Error("all_gather: x has no axis to join along").got(y);
  y.dims[0] = y.dims[0] * attrs.ranks;
  return y;
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  require_rank_count(op, attrs.ranks);
  const Tensor& x = op.tensor("x");
  Shape shape = x.shape();
  shape[0] *= attrs.ranks;
  Tensor y(x.dtype(), shape);
  std::vector<std::span<std::byte>> places;
  for (std::size_t k = 0; k < static_cast<std::size_t>(attrs.ranks); ++k)
    places.push_back(y.mutable_bytes().subspan(k * x.byte_size(), x.byte_size()));
  ranks_of(op).all_gather(x.bytes(), places);
  op.set("y", std::move(y));
}

void gradient(const Attrs& attrs, Gradient& op) {
  op.add("x", op.build().call("reduce_scatter", {op.upstream("y")}, {{"ranks", attrs.ranks}}));
}

}  // namespace

TENON_DEFINE_OP(all_gather) = OpSpec<Attrs>{
    .name = "all_gather",
    .summary = "every rank's x, joined in rank order along the first axis, on every rank",
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
