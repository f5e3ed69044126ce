#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"

namespace tenon::inline ops::constant_op {
namespace {

struct Attrs {
  Constant value;
};

TensorType infer(const Attrs& attrs, const OperandTypes&) { return attrs.value.type(); }

std::optional<Dims> known(const Attrs& attrs, const OperandTypes&) {
  const std::vector<std::int64_t> elements = attrs.value.materialise().integers();
  return Dims(elements.begin(), elements.end());
}

void evaluate(const Attrs& attrs, Evaluation& op) { op.set("y", attrs.value.materialise()); }

}  // namespace

TENON_DEFINE_OP(constant) = OpSpec<Attrs>{
    .name = "constant",
    .summary = "a value fixed in the graph",
    .operands = {},
    .results = {"y"},
    .attrs = {{"value", &Attrs::value, required}},
    .infer = infer,
    .known = known,
    .evaluate = evaluate,
    .gradient = not_differentiable("it reads nothing"),
    .layout = any_layout(),
    .precision = Precision::MovesOnly,
    .examples = {"-"},
};

}  // namespace tenon::inline ops::constant_op
