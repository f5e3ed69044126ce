#include "expr/equation.h"
#include "expr/lowering.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"

namespace tenon::inline ops::einsum_op {
namespace {

struct Attrs {
  std::string equation;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  std::vector<Dims> dims;
  const std::vector<TensorType> xs = in.variadic("xs");
  if (xs.empty()) throw Error("einsum: it has no operands");
  for (const TensorType& x : xs) {
    require_same_dtype("einsum", xs.front(), x);
    dims.push_back(x.dims);
  }
  return {xs.front().dtype, Equation(attrs.equation, dims).result_dims(), {}};
}

void lower(const Attrs& attrs, Lowering& op) {
  const std::vector<Expr> xs = op.variadic("xs");
  std::vector<Dims> dims;
  for (const Expr& x : xs) dims.push_back(x.dims());
  const Equation equation(attrs.equation, dims);

  Dims loops = equation.result_dims();
  std::vector<std::optional<std::size_t>> loop_of(equation.label_count());
  for (std::size_t k = 0; k < equation.result().size(); ++k) loop_of[equation.result()[k]] = k;
  const Axes summed = equation.add_missing_loops(loop_of, loops);
  const Space space(std::move(loops));
  std::vector<Expr> indices;
  for (const auto& loop : loop_of) indices.push_back(space[*loop]);
  Expr product = equation.read(0, xs[0], indices);
  for (std::size_t k = 1; k < xs.size(); ++k) product = product * equation.read(k, xs[k], indices);
  op.define("y", sum_over_space(space, product, summed));
}

void gradient(const Attrs& attrs, Gradient& op) {
  const std::vector<Var> xs = op.variadic("xs");
  std::vector<Var> operands{op.upstream("y")};
  operands.insert(operands.end(), xs.begin(), xs.end());
  for (std::size_t k = 0; k < xs.size(); ++k) {
    op.add(k, op.build().call(
                  "einsum_gradient", operands,
                  {{"equation", attrs.equation}, {"position", static_cast<std::int64_t>(k)}}));
  }
}

}  // namespace

TENON_DEFINE_OP(einsum) = OpSpec<Attrs>{
    .name = "einsum",
    .summary = "sums of products of elements, as the letters of `equation` pair up axes",
    .operands = {variadic("xs")},
    .results = {"y"},
    .attrs = {{"equation", &Attrs::equation, required}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
    .examples = {"xs: F i j; xs: F j k; equation = \"ij,jk->ik\"",
                 "xs: F b i j; xs: F b k j; equation = \"bij,bkj->bik\"",
                 "xs: F i j; equation = \"ij->ji\""},
};

}  // namespace tenon::inline ops::einsum_op
