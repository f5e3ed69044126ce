#include "ops/definition/elementwise.h"

namespace tenon::inline ops::mul_op {
namespace {

void gradient(const NoAttrs&, Gradient& op) {
  op.add("a", op.upstream("y") * op.operand("b"));
  op.add("b", op.upstream("y") * op.operand("a"));
}

}  // namespace

TENON_DEFINE_OP(mul) = BinarySpec<>{
    .name = "mul",
    .summary = "a * b, broadcast; integers wrap",
    .takes = numbers,
    .value = [](Expr a, Expr b) { return a * b; },
    .gradient = gradient,
};

}  // namespace tenon::inline ops::mul_op
