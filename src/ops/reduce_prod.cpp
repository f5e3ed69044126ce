#include "ops/families/reduction.h"

namespace tenon::inline ops::reduce_prod_op {
namespace {

void lower(const ReductionAttrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Axes axes = reduced_axes(attrs, x.rank());
  define_reduced(attrs, op, reduce(Reduction::Product, x, axes));
}

// The gradient is the product of all other elements, also with zeros: the product of the nonzero
// elements divided by the element itself, counted only if no other element is zero.
void gradient(const ReductionAttrs& attrs, Gradient& op) {
  Builder& build = op.build();
  const Var x = op.operand("x"), dy = with_kept_axes(attrs, op, op.upstream("y"));
  const Var is_zero = build.call("equal", {x, build.scalar(0, x)});
  const Var zero = cast_to(is_zero, op.operand_type("x").dtype);
  const Var nonzero = build.call("where", {is_zero, build.scalar(1, x), x});
  const Var other_zeros = reduce_likewise(attrs, op, "reduce_sum", zero) - zero;
  const Var counts = build.call("equal", {other_zeros, build.scalar(0, x)});
  const Var others = reduce_likewise(attrs, op, "reduce_prod", nonzero) / nonzero;
  op.add("x", build.call("where", {counts, dy * others, build.scalar(0, x)}));
}

}  // namespace

TENON_DEFINE_OP(reduce_prod) = reduction_op("reduce_prod", "the product over `axes`", lower,
                                            gradient);

}  // namespace tenon::inline ops::reduce_prod_op
