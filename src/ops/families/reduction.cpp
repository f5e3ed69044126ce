#include "ops/families/reduction.h"

namespace tenon::inline ops {
namespace {

Axes folded_axes(std::string_view name, const ReductionAttrs& attrs, std::size_t rank) {
  if (attrs.axes.empty() && attrs.noop_if_empty) return {};
  return normal_axes(name, attrs.axes, rank);
}

Dims kept_dims(const ReductionAttrs& attrs, Dims dims) {
  for (std::int64_t axis : reduced_axes(attrs, dims.size()))
    dims[static_cast<std::size_t>(axis)] = 1;
  return dims;
}

TensorType infer_reduction(const ReductionAttrs& attrs, const OperandTypes& in) {
  const TensorType& x = in["x"];
  TensorType y{x.dtype, {}, {}};
  const Axes axes = folded_axes(in.op_name(), attrs, x.rank());
  std::vector<bool> is_folded(x.rank(), false);
  for (std::int64_t axis : axes) is_folded[static_cast<std::size_t>(axis)] = true;
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    if (!is_folded[axis])
      y.dims.push_back(x.dims[axis]);
    else if (attrs.keep_axes)
      y.dims.push_back(1);
  }
  if (attrs.keep_axes) y.layout = x.layout;
  return y;
}

}  // namespace

OpSpec<ReductionAttrs> reduction_op(std::string name, std::string summary, ReductionLower lower,
                                    GradientRule<ReductionAttrs> gradient) {
  OpSpec<ReductionAttrs> spec;
  spec.name = std::move(name);
  spec.summary = std::move(summary);
  spec.operands = {"x"};
  spec.results = {"y"};
  spec.attrs = {{"axes", &ReductionAttrs::axes, dynamic},
                {"keep_axes", &ReductionAttrs::keep_axes},
                {"noop_if_empty", &ReductionAttrs::noop_if_empty}};
  spec.infer = infer_reduction;
  spec.lower = lower;
  spec.gradient = std::move(gradient);
  return spec;
}

Axes reduced_axes(const ReductionAttrs& attrs, std::size_t rank) {
  return folded_axes("reduction", attrs, rank);
}

Expr as_real(const Expr& x) { return is_float(x.dtype()) ? x : cast(x, DType::F64); }

void define_reduced(const ReductionAttrs& attrs, Lowering& op, const Expr& kept) {
  const Expr y = cast(kept, op.result_type("y").dtype);
  op.define("y", attrs.keep_axes ? y : drop_axes(y, reduced_axes(attrs, y.rank())));
}

Var with_kept_axes(const ReductionAttrs& attrs, Gradient& op, Var reduced) {
  if (attrs.keep_axes) return reduced;
  return reshape_to(reduced, kept_dims(attrs, op.operand_type("x").dims));
}

Var reduce_likewise(const ReductionAttrs& attrs, Gradient& op, std::string_view name, Var x) {
  const Axes axes = reduced_axes(attrs, op.operand_type("x").rank());
  return op.build().call(name, {x}, {{"axes", axes}, {"noop_if_empty", true}});
}

void extreme_gradient(const ReductionAttrs& attrs, Gradient& op) {
  const Var x = op.operand("x");
  const Var y = with_kept_axes(attrs, op, op.result("y"));
  const Var dy = with_kept_axes(attrs, op, op.upstream("y"));
  const Var chosen = cast_to(op.build().call("equal", {x, y}), op.operand_type("x").dtype);
  op.add("x", dy * chosen / reduce_likewise(attrs, op, "reduce_sum", chosen));
}

}  // namespace tenon::inline ops
