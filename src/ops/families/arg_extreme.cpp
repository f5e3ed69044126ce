#include "ops/families/arg_extreme.h"

#include "expr/lowering.h"

#include <limits>

namespace tenon::inline ops {
namespace {

TensorType infer_index(const ArgExtremeAttrs& attrs, const OperandTypes& in) {
  TensorType y{DType::I64, in["x"].dims, {}};
  const std::size_t axis = normal_axis(in.op_name(), attrs.axis, y.rank());
  if (attrs.keep_axes) {
    y.dims[axis] = 1;
  } else {
    y.dims.erase(y.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  return y;
}

// Vector lanes do not track positions. Along a long axis the extreme is computed first, then the
// first or last position that has this value; NaN counts as the extreme.
constexpr std::int64_t kLongAxis = 64;

Expr arg_extreme(const Expr& x, std::int64_t axis, Reduction reduction) {
  const Dim& extent = x.extent(axis);
  const bool is_long = extent.is_constant() && extent.constant() >= kLongAxis &&
                       extent.constant() < std::numeric_limits<std::int32_t>::max();
  if (!is_long || x.dtype() != DType::F32) return reduce(reduction, x, {axis});
  const bool is_max = reduction == Reduction::ArgMax || reduction == Reduction::ArgMaxLast;
  const bool is_last = reduction == Reduction::ArgMaxLast || reduction == Reduction::ArgMinLast;
  const Expr extreme = reduce(is_max ? Reduction::Max : Reduction::Min, x, {axis});
  const Expr is_it = equal(x, extreme) || apply(UnaryOp::IsNan, x);
  const auto at =
      static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(x.rank()) : axis);
  const Expr place = cast(Space(x.dims())[at], DType::I32);
  const double none = is_last ? -1 : std::numeric_limits<std::int32_t>::max();
  const Expr found = reduce(is_last ? Reduction::Max : Reduction::Min,
                            select(is_it, place, literal(DType::I32, none)), {axis});
  return cast(found, DType::I64);
}

}  // namespace

OpSpec<ArgExtremeAttrs> arg_extreme_op(std::string name, std::string summary,
                                       void (*lower)(const ArgExtremeAttrs&, Lowering&)) {
  OpSpec<ArgExtremeAttrs> spec;
  spec.name = std::move(name);
  spec.summary = std::move(summary);
  spec.operands = {"x"};
  spec.results = {"y"};
  spec.attrs = {{"axis", &ArgExtremeAttrs::axis},
                {"keep_axes", &ArgExtremeAttrs::keep_axes},
                {"select_last", &ArgExtremeAttrs::select_last}};
  spec.infer = infer_index;
  spec.lower = lower;
  spec.gradient = not_differentiable("it gives an index");
  spec.layout = follows_axis("axis");
  return spec;
}

void define_arg_extreme(const ArgExtremeAttrs& attrs, Lowering& op, Reduction first,
                        Reduction last) {
  const Expr kept = arg_extreme(op.operand("x"), attrs.axis, attrs.select_last ? last : first);
  op.define("y", attrs.keep_axes ? kept : drop_axes(kept, {attrs.axis}));
}

}  // namespace tenon::inline ops
