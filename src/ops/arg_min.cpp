#include "ops/families/arg_extreme.h"

namespace tenon::inline ops::arg_min_op {
namespace {

void lower(const ArgExtremeAttrs& attrs, Lowering& op) {
  define_arg_extreme(attrs, op, Reduction::ArgMin, Reduction::ArgMinLast);
}

}  // namespace

TENON_DEFINE_OP(arg_min) = arg_extreme_op("arg_min",
                                          "the position of the smallest element along `axis`",
                                          lower);

}  // namespace tenon::inline ops::arg_min_op
