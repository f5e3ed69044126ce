#include "ops/definition/elementwise.h"

namespace tenon::inline ops::shrink_op {
namespace {

struct Attrs {
  double bound = 0.5;
  double bias = 0;
};

// Integers compute as reals and are truncated at the end.
Expr value(const Attrs& attrs, const Expr& x) {
  const Expr wide = is_float(x.dtype()) ? x : cast(x, DType::F64);
  const Expr above = select(wide > attrs.bound, wide - attrs.bias, 0.0);
  return cast(select(wide < -attrs.bound, wide + attrs.bias, above), x.dtype());
}

}  // namespace

TENON_DEFINE_OP(shrink) = UnarySpec<Attrs>{
    .name = "shrink",
    .summary = "x moved towards 0 by bias where |x| exceeds bound, else 0",
    .takes = reals,
    .attrs = {{"bound", &Attrs::bound}, {"bias", &Attrs::bias}},
    .value = value,
    .slope = [](const Attrs& attrs, Var x,
                Var) { return choose(is_greater(call("abs", {x}), attrs.bound), 1, 0, x); },
};

}  // namespace tenon::inline ops::shrink_op
