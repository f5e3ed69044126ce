#include "ops/definition/elements.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"
#include "ops/families/collective.h"

namespace tenon::inline ops::broadcast_op {
namespace {

struct Attrs {
  std::int64_t root = 0;
};

ResultTypes infer(const Attrs& attrs, const OperandTypes& in) {
  require_at_least("broadcast", "root", attrs.root, 0);
  return require_elements(in, "x", numbers | bools);
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  require_rank("broadcast", attrs.root, ranks_of(op));
  Tensor y = op.tensor("x");
  ranks_of(op).broadcast(y.mutable_bytes(), static_cast<int>(attrs.root));
  op.set("y", std::move(y));
}

}  // namespace

TENON_DEFINE_COLLECTIVE(broadcast) = {};

TENON_DEFINE_OP(broadcast) = OpSpec<Attrs>{
    .name = "broadcast",
    .summary = "the x of rank `root`, on every rank",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"root", &Attrs::root}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("what the other ranks gave is left out"),
    .layout = logical_order(),
    .is_random = true,  // another rank determines the result
};

}  // namespace tenon::inline ops::broadcast_op
