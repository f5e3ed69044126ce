#include "ops/families/cumulative.h"

namespace tenon::inline ops::cumsum_op {
namespace {

void lower(const CumulativeAttrs& attrs, Lowering& op) {
  define_cumulative(attrs, op, Reduction::Sum);
}

void gradient(const CumulativeAttrs& attrs, Gradient& op) {
  op.add("x", reversed_cumsum(attrs, op.upstream("y")));
}

}  // namespace

TENON_DEFINE_OP(cumsum) = with_examples({"x: T a b; axis = 0"},
                                        cumulative_op("cumsum", "the running sum along `axis`",
                                                      lower, gradient));

}  // namespace tenon::inline ops::cumsum_op
