#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"
#include "ops/families/collective.h"

namespace tenon::inline ops::receive_op {
namespace {

struct Attrs {
  Dims shape;
  DType dtype = DType::F32;
  std::int64_t from = 0;
};

TensorType infer(const Attrs& attrs, const OperandTypes&) {
  require_at_least("receive", "from", attrs.from, 0);
  require_numbers("receive", "dtype", attrs.dtype);
  return {attrs.dtype, attrs.shape, {}};
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  require_other_rank("receive", attrs.from, ranks_of(op));
  Tensor y(attrs.dtype, constants(attrs.shape));
  ranks_of(op).receive(y.mutable_bytes(), static_cast<int>(attrs.from));
  op.set("y", std::move(y));
}

}  // namespace

TENON_DEFINE_COLLECTIVE(receive) = {};

TENON_DEFINE_OP(receive) = OpSpec<Attrs>{
    .name = "receive",
    .summary = "what rank `from` sends here by its next `send`",
    .operands = {},
    .results = {"y"},
    .attrs = {{"shape", &Attrs::shape}, {"dtype", &Attrs::dtype}, {"from", &Attrs::from}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("it reads nothing"),
    .layout = logical_order(),
    .is_random = true,  // two messages must not be merged
};

}  // namespace tenon::inline ops::receive_op
