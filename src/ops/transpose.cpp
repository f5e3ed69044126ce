#include "expr/lowering.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"

#include <algorithm>
#include <numeric>

namespace tenon::inline ops::transpose_op {
namespace {

struct Attrs {
  std::vector<std::int64_t> perm;  // empty: the axes in reverse
};

std::vector<std::int64_t> permutation(const Attrs& attrs, std::size_t rank) {
  std::vector<std::int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  if (attrs.perm.empty()) {
    std::reverse(order.begin(), order.end());
    return order;
  }
  if (attrs.perm.size() != rank || normal_axes("transpose", attrs.perm, rank).size() != rank) {
    throw Error("transpose: perm does not name every axis once")
        .expected(rank, " axes")
        .got(attrs.perm.size());
  }
  for (std::size_t k = 0; k < rank; ++k) {
    order[k] = static_cast<std::int64_t>(normal_axis("transpose", attrs.perm[k], rank));
  }
  return order;
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& x = in["x"];
  TensorType y{x.dtype, {}, {}};
  const std::string& letters = x.layout.text();
  std::string moved;
  for (std::int64_t axis : permutation(attrs, x.rank())) {
    y.dims.push_back(x.dims[static_cast<std::size_t>(axis)]);
    if (letters.size() == x.rank()) moved += letters[static_cast<std::size_t>(axis)];
  }
  if (!moved.empty()) y.layout = Layout(moved);
  return y;
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  op.define("y", transpose(x, permutation(attrs, x.rank())));
}

void gradient(const Attrs& attrs, Gradient& op) {
  const auto perm = permutation(attrs, op.operand_type("x").rank());
  Attr::Integers inverse(perm.size());
  for (std::size_t k = 0; k < perm.size(); ++k) {
    inverse[static_cast<std::size_t>(perm[k])] = static_cast<std::int64_t>(k);
  }
  op.add("x", op.build().call("transpose", {op.upstream("y")}, {{"perm", inverse}}));
}

}  // namespace

TENON_DEFINE_OP(transpose) = OpSpec<Attrs>{
    .name = "transpose",
    .summary = "axes in another order: axis k of the result is axis perm[k] of x",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"perm", &Attrs::perm}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
    .examples = {"x: T a b c"},
};

}  // namespace tenon::inline ops::transpose_op
