#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"
#include "ops/families/collective.h"

namespace tenon::inline ops::all_reduce_op {
namespace {

struct Attrs {
  std::int64_t ranks = 0, stride = 1;  // ranks and stride of each group; 0: all ranks
};

ResultTypes infer(const Attrs& attrs, const OperandTypes& in) {
  require_at_least("all_reduce", "ranks", attrs.ranks, 0);
  require_at_least("all_reduce", "stride", attrs.stride, 1);
  return require_elements(in, "x", reals);
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  const Tensor& x = op.tensor("x");
  RankGroup group =
      group_of(op, attrs.ranks == 0 ? ranks_of(op).size() : attrs.ranks, attrs.stride);
  RankSum sum(group, x.dtype(), static_cast<std::size_t>(x.size()));
  sum.add(x.bytes());
  Tensor y(x.dtype(), x.shape());
  sum.take(y.mutable_bytes());
  op.set("y", std::move(y));
}

// Every rank's loss depends on the sum, so the gradients of all ranks are summed too.
void gradient(const Attrs& attrs, Gradient& op) {
  op.add("x", op.build().call("all_reduce", {op.upstream("y")},
                              {{"ranks", attrs.ranks}, {"stride", attrs.stride}}));
}

}  // namespace

TENON_DEFINE_COLLECTIVE(all_reduce) = {.adds = true};

TENON_DEFINE_OP(all_reduce) = OpSpec<Attrs>{
    .name = "all_reduce",
    .summary =
        "the sum of every rank's x, added in rank order, on every rank; of groups of `ranks`, "
        "`stride` apart",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"ranks", &Attrs::ranks}, {"stride", &Attrs::stride}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = gradient,
    .layout = logical_order(),
    .is_random = true,  // other ranks determine the result
};

}  // namespace tenon::inline ops::all_reduce_op
