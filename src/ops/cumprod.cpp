#include "ops/families/cumulative.h"

namespace tenon::inline ops::cumprod_op {
namespace {

void lower(const CumulativeAttrs& attrs, Lowering& op) {
  define_cumulative(attrs, op, Reduction::Product);
}

// TODO: exact zeros in x give NaN here; needed once a model trains through a cumprod with zeros.
void gradient(const CumulativeAttrs& attrs, Gradient& op) {
  op.add("x", reversed_cumsum(attrs, op.upstream("y") * op.result("y")) / op.operand("x"));
}

}  // namespace

TENON_DEFINE_OP(cumprod) = with_examples({"x: F a b; axis = 1"},
                                         cumulative_op("cumprod",
                                                       "the running product along `axis`", lower,
                                                       gradient));

}  // namespace tenon::inline ops::cumprod_op
