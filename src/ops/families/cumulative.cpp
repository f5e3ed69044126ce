#include "ops/families/cumulative.h"

namespace tenon::inline ops {
namespace {

TensorType infer_cumulative(const CumulativeAttrs& attrs, const OperandTypes& in) {
  normal_axis(in.op_name(), attrs.axis, in["x"].rank());
  return in["x"];
}

}  // namespace

OpSpec<CumulativeAttrs> cumulative_op(std::string name, std::string summary,
                                      void (*lower)(const CumulativeAttrs&, Lowering&),
                                      GradientRule<CumulativeAttrs> gradient) {
  OpSpec<CumulativeAttrs> spec;
  spec.name = std::move(name);
  spec.summary = std::move(summary);
  spec.operands = {"x"};
  spec.results = {"y"};
  spec.attrs = {{"axis", &CumulativeAttrs::axis, dynamic_required},
                {"exclusive", &CumulativeAttrs::exclusive},
                {"reverse", &CumulativeAttrs::reverse}};
  spec.infer = infer_cumulative;
  spec.lower = lower;
  spec.gradient = std::move(gradient);
  spec.layout = follows_axis("axis");
  return spec;
}

void define_cumulative(const CumulativeAttrs& attrs, Lowering& op, Reduction reduction) {
  op.define("y", scan(reduction, op.operand("x"), attrs.axis, attrs.exclusive, attrs.reverse));
}

Var reversed_cumsum(const CumulativeAttrs& attrs, Var x) {
  return x.builder().call(
      "cumsum", {x},
      {{"axis", attrs.axis}, {"exclusive", attrs.exclusive}, {"reverse", !attrs.reverse}});
}

}  // namespace tenon::inline ops
