#include "ops/definition/same_elements.h"

namespace tenon::inline ops::unsqueeze_op {
namespace {

struct Attrs {
  std::vector<std::int64_t> axes;  // positions in the result
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& x = in["x"];
  TensorType y{x.dtype, x.dims, {}};
  if (attrs.axes.empty()) return y;
  // Ascending, so that each axis is inserted at its final position.
  for (std::int64_t axis : normal_axes("unsqueeze", attrs.axes, x.rank() + attrs.axes.size())) {
    y.dims.insert(y.dims.begin() + axis, Dim(1));
  }
  return y;
}

}  // namespace

TENON_DEFINE_OP(unsqueeze) = with_examples(
    {"x: T a b; axes = 1"},
    same_elements_op<Attrs>("unsqueeze", "new axes of extent 1, at these positions of the result",
                            {{"axes", &Attrs::axes, dynamic_required}}, infer));

}  // namespace tenon::inline ops::unsqueeze_op
