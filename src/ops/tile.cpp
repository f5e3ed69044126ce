#include "expr/lowering.h"
#include "ir/assumptions.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/var_ops.h"
#include "ops/families/movement.h"

namespace tenon::inline ops::tile_op {
namespace {

struct Attrs {
  Dims repeats;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  TensorType y = in["x"];
  if (attrs.repeats.size() != y.rank()) {
    throw Error("tile: one repeat is needed for each axis").expected(y.rank()).got(attrs.repeats);
  }
  for (std::size_t axis = 0; axis < y.rank(); ++axis) {
    if (!assume_at_most(0, attrs.repeats[axis])) {
      throw Error("tile: a repeat is negative").got(attrs.repeats);
    }
    y.dims[axis] = y.dims[axis] * attrs.repeats[axis];
  }
  return y;
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Space space(op.result_type("y").dims);
  std::vector<Expr> coordinates = space.indices();
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    if (attrs.repeats[axis] != Dim(1)) coordinates[axis] = mod(space[axis], x.dims()[axis]);
  }
  op.define("y", x.at(std::move(coordinates)));
}

// The copies get an axis of their own, which is summed.
void gradient(const Attrs& attrs, Gradient& op) {
  const TensorType x = op.operand_type("x");
  Dims parted;
  Attr::Integers copies;
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    copies.push_back(static_cast<std::int64_t>(parted.size()));
    parted.push_back(attrs.repeats[axis]);
    parted.push_back(x.dims[axis]);
  }
  const Var dy = reshape_to(op.upstream("y"), parted);
  if (copies.empty()) return op.add("x", dy);
  op.add("x", op.build().call("reduce_sum", {dy}, {{"axes", copies}, {"keep_axes", false}}));
}

}  // namespace

TENON_DEFINE_OP(tile) = OpSpec<Attrs>{
    .name = "tile",
    .summary = "x repeated as a whole, repeats[k] times along axis k",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"repeats", &Attrs::repeats, dynamic_required}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
    .examples = {"x: T a b; repeats = 2 _"},
};

}  // namespace tenon::inline ops::tile_op
