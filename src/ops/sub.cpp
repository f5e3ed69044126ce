#include "ops/definition/elementwise.h"

namespace tenon::inline ops::sub_op {
namespace {

void gradient(const NoAttrs&, Gradient& op) {
  op.add("a", op.upstream("y"));
  op.add("b", -op.upstream("y"));
}

}  // namespace

TENON_DEFINE_OP(sub) = BinarySpec<>{
    .name = "sub",
    .summary = "a - b, broadcast; integers wrap",
    .takes = numbers,
    .value = [](Expr a, Expr b) { return a - b; },
    .gradient = gradient,
};

}  // namespace tenon::inline ops::sub_op
