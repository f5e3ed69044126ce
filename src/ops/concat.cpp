#include "expr/lowering.h"
#include "ir/assumptions.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"

namespace tenon::inline ops::concat_op {
namespace {

struct Attrs {
  std::int64_t axis = 0;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const std::vector<TensorType> xs = in.variadic("xs");
  if (xs.empty()) throw Error("concat: there is nothing to join");
  TensorType y = xs.front();
  const std::size_t along = normal_axis("concat", attrs.axis, y.rank());
  for (std::size_t k = 1; k < xs.size(); ++k) {
    const TensorType& x = xs[k];
    require_same_dtype("concat", y, x);
    require_rank("concat", "xs", x, y.rank());
    for (std::size_t axis = 0; axis < y.rank(); ++axis) {
      if (axis == along) {
        y.dims[axis] = y.dims[axis] + x.dims[axis];
      } else if (!assume_equal(y.dims[axis], x.dims[axis])) {
        throw Error("concat: operands differ off the axis they are joined along")
            .expected("equal extents at axis ", axis)
            .got(xs.front(), " and ", x);
      } else if (x.dims[axis].is_constant()) {
        y.dims[axis] = x.dims[axis];
      }
    }
  }
  return y;
}

void lower(const Attrs& attrs, Lowering& op) {
  op.define("y", concat(op.variadic("xs"), attrs.axis));
}

void gradient(const Attrs& attrs, Gradient& op) {
  const std::vector<Var> xs = op.variadic("xs");
  Dims sizes;
  for (Var x : xs) {
    const TensorType& type = op.build().type(x).tensor();
    sizes.push_back(type.dims[normal_axis("concat", attrs.axis, type.rank())]);
  }
  const std::vector<Var> parts = op.build().call_all(
      "split", {op.upstream("y")}, Attributes{{"axis", Dim(attrs.axis)}, {"sizes", sizes}},
      std::vector<std::string>(xs.size()));
  for (std::size_t k = 0; k < parts.size(); ++k) op.add(k, parts[k]);
}

}  // namespace

TENON_DEFINE_OP(concat) = OpSpec<Attrs>{
    .name = "concat",
    .summary = "operands end to end along `axis`",
    .operands = {variadic("xs")},
    .results = {"y"},
    .attrs = {{"axis", &Attrs::axis, required}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = follows_axis("axis"),
    .precision = Precision::MovesOnly,
    .examples = {"xs*2: T a b c", "xs*3: T a b"},
};

}  // namespace tenon::inline ops::concat_op
