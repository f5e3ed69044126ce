#include "ops/elements.h"
#include "ops/evaluation.h"
#include "ops/op_spec.h"
#include "ops/tensor_parts.h"

namespace tenon {
namespace {

struct Attrs {
  std::optional<std::int64_t> axis;  // absent: of the flattened tensor
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  TensorType y = in["x"];
  require_elements(in, "condition", bools);
  require_rank("compress", "condition", in["condition"], 1);
  if (!attrs.axis) return {y.dtype, {in.unknown()}, {}};
  y.dims[normal_axis("compress", *attrs.axis, y.rank())] = in.unknown();
  return y;
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  const Tensor& condition = op.tensor("condition");
  const Tensor& given = op.tensor("x");
  const Tensor x = attrs.axis ? given : given.reshaped({given.size()});
  const std::size_t axis = attrs.axis ? normal_axis("compress", *attrs.axis, x.rank()) : 0;
  if (condition.size() > x.shape()[axis]) {
    throw Error("compress: the condition is longer than the axis")
        .expected("at most ", x.shape()[axis])
        .got(condition.size());
  }
  std::vector<Tensor> kept{slice_of(x, axis, 0, 0)};
  for (std::int64_t k = 0; k < condition.size(); ++k) {
    if (condition.integer_at(k) != 0) kept.push_back(slice_of(x, axis, k, 1));
  }
  op.set("y", join_along("compress", kept, axis));
}

}  // namespace

TENON_DEFINE_OP(compress) = OpSpec<Attrs>{
    .name = "compress",
    .summary = "the slices along `axis` (elements, if there is none) whose condition holds",
    .operands = {"x", "condition"},
    .results = {"y"},
    .attrs = {{"axis", &Attrs::axis}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("the condition decides the shape"),
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
};

}  // namespace tenon
