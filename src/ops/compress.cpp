#include "ops/definition/elements.h"
#include "ops/definition/evaluation.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/families/tensor_parts.h"

namespace tenon::inline ops::compress_op {
namespace {

struct Attrs {
  std::optional<std::int64_t> axis;  // absent: compresses the flattened tensor
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

// Gathers, for each slice of x, the gradient at its position among the kept slices; dropped slices
// read a zero slice appended at the end.
void gradient(const Attrs& attrs, Gradient& op) {
  Builder& build = op.build();
  const TensorType x = op.operand_type("x");
  Dims slice = attrs.axis ? x.dims : Dims{product(x.dims)};
  const std::size_t axis = attrs.axis ? normal_axis("compress", *attrs.axis, x.rank()) : 0;
  const Dim extent = std::exchange(slice[axis], Dim(1));
  const auto along = static_cast<std::int64_t>(axis);
  const Var condition = op.operand("condition"), kept = cast_to(condition, DType::I64);
  const Var count = build.call("reduce_sum", {kept}, {{"axes", Attr::Integers{0}}});
  Var places = build.call("cumsum", {kept}, {{"axis", 0}}) - 1.0;
  places = build.call("where", {condition, places, count});
  // a condition may be shorter than the axis
  const Dim rest = extent - op.operand_type("condition").dims[0];
  if (!(rest == Dim(0)))
    places = build.call("concat", {places, expand_to(count, {rest})}, {{"axis", 0}});
  const Var dy = op.upstream("y");
  const Var all =
      build.call("concat", {dy, expand_to(build.scalar(0, dy), slice)}, {{"axis", along}});
  op.add("x", reshape_to(build.call("gather", {all, places}, {{"axis", along}}), x.dims));
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
    .gradient = gradient,
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
    .examples = {"x: T a b; condition: B a; axis = 0"},
};

}  // namespace tenon::inline ops::compress_op
