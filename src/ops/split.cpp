#include "expr/lowering.h"
#include "ir/assumptions.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/families/movement.h"

namespace tenon::inline ops::split_op {
namespace {

struct Attrs {
  std::int64_t axis = 0;
  Dims sizes;  // empty: equal parts, the last one smaller if the axis is not divisible
};

Dims equal_parts(const Dim& extent, std::size_t count) {
  const auto parts = static_cast<std::int64_t>(count);
  const Dim part = ceil_div(extent, parts);
  Dims sizes(count, part);
  sizes.back() = extent - part * (parts - 1);
  if (!assume_at_most(0, sizes.back())) {
    throw Error("split: nothing is left for the last part")
        .got("extent ", extent, " in ", count, " parts");
  }
  return sizes;
}

ResultTypes infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& x = in["x"];
  const std::size_t axis = normal_axis("split", attrs.axis, x.rank());
  const Dims sizes =
      attrs.sizes.empty() ? equal_parts(x.dims[axis], in.result_count()) : attrs.sizes;
  if (sizes.size() != in.result_count()) {
    throw Error("split: sizes and results differ in number")
        .expected(in.result_count(), " sizes")
        .got(sizes);
  }
  Dim total = 0;
  std::vector<Type> parts;
  for (const Dim& size : sizes) {
    if (!assume_at_most(0, size)) throw Error("split: a size is negative").got(sizes);
    total = total + size;
    TensorType part = x;
    part.dims[axis] = size;
    parts.emplace_back(std::move(part));
  }
  if (!any_unknown(sizes) && !assume_equal(total, x.dims[axis])) {
    throw Error("split: the sizes do not sum to the axis's extent")
        .expected(x.dims[axis])
        .got(sizes);
  }
  return parts;
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const std::size_t axis = normal_axis("split", attrs.axis, x.rank());
  Dim offset = 0;
  for (std::size_t k = 0; k < op.result_count(); ++k) {
    const Space space(op.result_type(k).dims);
    op.define(k, x.at(with_coordinate(space, axis, space[axis] + offset)));
    offset = offset + space.dims()[axis];
  }
}

void gradient(const Attrs& attrs, Gradient& op) {
  std::vector<Var> parts;
  for (std::size_t k = 0; k < op.result_count(); ++k) parts.push_back(op.upstream(k));
  op.add("x", op.build().call("concat", parts, {{"axis", attrs.axis}}));
}

}  // namespace

TENON_DEFINE_OP(split) = OpSpec<Attrs>{
    .name = "split",
    .summary = "x cut along `axis` into parts of these sizes, or equal ones",
    .operands = {"x"},
    .results = {variadic("parts")},
    .attrs = {{"axis", &Attrs::axis}, {"sizes", &Attrs::sizes, dynamic}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = follows_axis("axis"),
    .precision = Precision::MovesOnly,
    .examples = {"x: T 4 b; axis = 0", "x: T a 5; axis = 1; sizes = 2 3"},
};

}  // namespace tenon::inline ops::split_op
