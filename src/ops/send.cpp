#include "ops/definition/elements.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"
#include "ops/families/collective.h"

namespace tenon::inline ops::send_op {
namespace {

struct Attrs {
  std::int64_t to = 0;
};

ResultTypes infer(const Attrs& attrs, const OperandTypes& in) {
  require_at_least("send", "to", attrs.to, 0);
  return require_elements(in, "x", numbers | bools);
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  require_other_rank("send", attrs.to, ranks_of(op));
  ranks_of(op).send(op.tensor("x").bytes(), static_cast<int>(attrs.to));
  op.set("y", op.tensor("x"));
}

}  // namespace

TENON_DEFINE_COLLECTIVE(send) = {};

TENON_DEFINE_OP(send) = OpSpec<Attrs>{
    .name = "send",
    .summary = "x itself, which rank `to` gets by its `receive`; sent only where y is used",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"to", &Attrs::to}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("what the other rank makes of it is not in this graph"),
    .layout = logical_order(),
    .is_random = true,  // two messages must not be merged
};

}  // namespace tenon::inline ops::send_op
