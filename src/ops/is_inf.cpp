#include "ops/definition/elementwise.h"

namespace tenon::inline ops::is_inf_op {
namespace {

struct Attrs {
  bool positive = true;
  bool negative = true;
};

Expr value(const Attrs& attrs, const Expr& x) {
  const Expr above = apply(UnaryOp::IsPositiveInf, x), below = apply(UnaryOp::IsNegativeInf, x);
  if (attrs.positive && attrs.negative) return above || below;
  if (attrs.positive || attrs.negative) return attrs.positive ? above : below;
  return above && below;
}

}  // namespace

TENON_DEFINE_OP(is_inf) = UnarySpec<Attrs>{
    .name = "is_inf",
    .summary = "whether x is an infinity of a sign that is asked for",
    .attrs = {{"positive", &Attrs::positive}, {"negative", &Attrs::negative}},
    .value = value,
    .gives_bool = true,
};

}  // namespace tenon::inline ops::is_inf_op
