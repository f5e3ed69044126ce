#include "ops/arg_extreme.h"

#include "ops/lowering.h"

namespace tenon {
namespace {

TensorType infer(const ArgExtremeAttrs& attrs, const OperandTypes& in) {
  TensorType y{DType::I64, in["x"].dims, {}};
  const std::size_t axis = normal_axis(in.op_name(), attrs.axis, y.rank());
  if (attrs.keep_axes) {
    y.dims[axis] = 1;
  } else {
    y.dims.erase(y.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  return y;
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
  spec.infer = infer;
  spec.lower = lower;
  spec.gradient = not_differentiable("it gives an index");
  spec.layout = follows_axis("axis");
  return spec;
}

void define_arg_extreme(const ArgExtremeAttrs& attrs, Lowering& op, Reduction first,
                        Reduction last) {
  const Expr kept = reduce(attrs.select_last ? last : first, op.operand("x"), {attrs.axis});
  op.define("y", attrs.keep_axes ? kept : drop_axes(kept, {attrs.axis}));
}

}  // namespace tenon
