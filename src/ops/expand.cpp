#include "expr/lowering.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/families/movement.h"

#include <algorithm>

namespace tenon::inline ops::expand_op {
namespace {

struct Attrs {
  Dims shape;
};

Dim expanded_extent(const Dim& own, const Dim& wanted, const OperandTypes& in) {
  if (own == wanted || wanted == Dim(1)) return own;
  if (own == Dim(1)) return wanted;
  if (is_unknown(wanted)) return own.is_constant() ? own : in.unknown();
  return broadcast_dims({own}, {wanted}).front();
}

// Both sides broadcast: an extent of 1 in `shape` keeps the operand's extent.
TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& x = in["x"];
  const std::size_t rank = std::max(x.rank(), attrs.shape.size());
  Dims dims(rank, Dim(1));
  try {
    for (std::size_t back = 1; back <= rank; ++back) {
      const Dim own = back <= x.rank() ? x.dims[x.rank() - back] : Dim(1);
      const Dim wanted =
          back <= attrs.shape.size() ? attrs.shape[attrs.shape.size() - back] : Dim(1);
      dims[rank - back] = expanded_extent(own, wanted, in);
    }
  } catch (const Error&) {
    throw Error("expand: the shape does not broadcast with the operand")
        .expected("extents that are equal or 1, counted from the last axis")
        .got("x: ", x, ", shape: ", attrs.shape);
  }
  return {x.dtype, std::move(dims), {}};
}

void lower(const Attrs&, Lowering& op) { op.define("y", op.operand("x")); }

void gradient(const Attrs&, Gradient& op) { op.add("x", op.upstream("y")); }

}  // namespace

TENON_DEFINE_OP(expand) = OpSpec<Attrs>{
    .name = "expand",
    .summary = "repeats axes of extent 1 until x has `shape`, which is broadcast with its own",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"shape", &Attrs::shape, dynamic_required}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
    .examples = {"x: T 1 b; shape = a b", "x: T b; shape = a b"},
};

}  // namespace tenon::inline ops::expand_op
