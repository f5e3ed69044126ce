#include "ops/definition/elementwise.h"

namespace tenon::inline ops::thresholded_relu_op {
namespace {

struct Attrs {
  double alpha = 1;
};

}  // namespace

TENON_DEFINE_OP(thresholded_relu) = UnarySpec<Attrs>{
    .name = "thresholded_relu",
    .summary = "x where it exceeds alpha, else 0",
    .attrs = {{"alpha", &Attrs::alpha}},
    .value = [](const Attrs& attrs, Expr x) { return select(x > attrs.alpha, x, 0.0); },
    .slope = [](const Attrs& attrs, Var x,
                Var) { return choose(is_greater(x, attrs.alpha), 1, 0, x); },
};

}  // namespace tenon::inline ops::thresholded_relu_op
