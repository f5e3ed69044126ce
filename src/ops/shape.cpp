#include "expr/lowering.h"
#include "ops/definition/op_spec.h"

#include <algorithm>

namespace tenon::inline ops::shape_op {
namespace {

struct Attrs {
  std::int64_t start = 0;  // negative: counted from the last axis
  std::optional<std::int64_t> end;
};

Dims extents(const Attrs& attrs, const Dims& dims) {
  const auto rank = static_cast<std::int64_t>(dims.size());
  const auto bound = [&](std::int64_t axis) {
    return std::clamp<std::int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  const std::int64_t start = bound(attrs.start), end = bound(attrs.end.value_or(rank));
  if (start >= end) return {};
  return Dims(dims.begin() + start, dims.begin() + end);
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  return {DType::I64, {static_cast<std::int64_t>(extents(attrs, in["x"].dims).size())}, {}};
}

std::optional<Dims> known(const Attrs& attrs, const OperandTypes& in) {
  return extents(attrs, in["x"].dims);
}

void lower(const Attrs& attrs, Lowering& op) {
  std::vector<Expr> parts;
  for (const Dim& extent : extents(attrs, op.operand_type("x").dims)) {
    parts.push_back(reshape(extent_expr(extent), {1}));
  }
  op.define("y", parts.empty() ? Space({0})[0] : concat(parts, std::int64_t{0}));
}

}  // namespace

TENON_DEFINE_OP(shape) = OpSpec<Attrs>{
    .name = "shape",
    .summary = "the extents of x, of the axes from `start` up to `end`",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"start", &Attrs::start}, {"end", &Attrs::end}},
    .infer = infer,
    .known = known,
    .lower = lower,
    .gradient = not_differentiable("it reads extents, not elements"),
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
};

}  // namespace tenon::inline ops::shape_op
