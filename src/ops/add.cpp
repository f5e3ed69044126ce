#include "ops/definition/elementwise.h"

namespace tenon::inline ops::add_op {
namespace {

void gradient(const NoAttrs&, Gradient& op) {
  op.add("a", op.upstream("y"));
  op.add("b", op.upstream("y"));
}

}  // namespace

TENON_DEFINE_OP(add) = BinarySpec<>{
    .name = "add",
    .summary = "a + b, broadcast; integers wrap",
    .takes = numbers,
    .value = [](Expr a, Expr b) { return a + b; },
    .gradient = gradient,
};

}  // namespace tenon::inline ops::add_op
