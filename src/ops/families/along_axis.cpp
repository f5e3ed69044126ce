#include "ops/families/along_axis.h"

namespace tenon::inline ops {
namespace {

TensorType infer_same(const AxisAttrs& attrs, const OperandTypes& in) {
  normal_axis(in.op_name(), attrs.axis, in["x"].rank());
  return in["x"];
}

}  // namespace

OpSpec<AxisAttrs> along_axis_op(std::string name, std::string summary,
                                void (*lower)(const AxisAttrs&, Lowering&),
                                GradientRule<AxisAttrs> gradient) {
  OpSpec<AxisAttrs> spec;
  spec.name = std::move(name);
  spec.summary = std::move(summary);
  spec.operands = {"x"};
  spec.results = {"y"};
  spec.attrs = {{"axis", &AxisAttrs::axis}};
  spec.infer = infer_same;
  spec.lower = lower;
  spec.gradient = std::move(gradient);
  spec.layout = follows_axis("axis");
  return spec;
}

}  // namespace tenon::inline ops
