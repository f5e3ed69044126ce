#include "ops/definition/elementwise.h"

namespace tenon::inline ops::div_op {
namespace {

void gradient(const NoAttrs&, Gradient& op) {
  const Var share = op.upstream("y") / op.operand("b");
  op.add("a", share);
  op.add("b", -(share * op.result("y")));
}

}  // namespace

TENON_DEFINE_OP(div) = BinarySpec<>{
    .name = "div",
    .summary = "a / b, broadcast; integers lose the fraction",
    .takes = numbers,
    .value = [](Expr a, Expr b) { return a / b; },
    .gradient = gradient,
};

}  // namespace tenon::inline ops::div_op
