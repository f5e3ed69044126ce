#include "ops/families/arg_extreme.h"

namespace tenon::inline ops::arg_max_op {
namespace {

void lower(const ArgExtremeAttrs& attrs, Lowering& op) {
  define_arg_extreme(attrs, op, Reduction::ArgMax, Reduction::ArgMaxLast);
}

}  // namespace

TENON_DEFINE_OP(arg_max) = arg_extreme_op("arg_max",
                                          "the position of the largest element along `axis`",
                                          lower);

}  // namespace tenon::inline ops::arg_max_op
