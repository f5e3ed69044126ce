#include "expr/equation.h"
#include "expr/lowering.h"
#include "ops/definition/derived_gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_shapes.h"

namespace tenon::inline ops::einsum_gradient_op {
namespace {

struct Attrs {
  std::string equation;
  std::int64_t position = 0;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const std::vector<TensorType> xs = in.variadic("xs");
  if (attrs.position < 0 || attrs.position >= static_cast<std::int64_t>(xs.size())) {
    throw Error("einsum_gradient: there is no operand at 'position'").got(attrs.position);
  }
  const TensorType& x = xs[static_cast<std::size_t>(attrs.position)];
  std::vector<Dims> dims;
  for (const TensorType& each : xs) {
    require_same_dtype("einsum_gradient", in["dy"], each);
    dims.push_back(each.dims);
  }
  require_dims("einsum_gradient", "dy", in["dy"], Equation(attrs.equation, dims).result_dims());
  return {x.dtype, x.dims, {}};
}

// Loops over the operand's axes first. Labels that the operand lacks, or has with extent 1, are
// summed over.
void lower(const Attrs& attrs, Lowering& op) {
  const std::vector<Expr> xs = op.variadic("xs");
  const auto position = static_cast<std::size_t>(attrs.position);
  std::vector<Dims> dims;
  for (const Expr& x : xs) dims.push_back(x.dims());
  const Equation equation(attrs.equation, dims);

  Dims loops = dims[position];
  std::vector<std::optional<std::size_t>> loop_of(equation.label_count());
  std::vector<std::pair<std::size_t, std::size_t>> diagonals;
  for (std::size_t axis = 0; axis < loops.size(); ++axis) {
    auto& loop = loop_of[equation.operand(position)[axis]];
    if (equation.repeats(position, axis)) continue;
    if (loop) diagonals.emplace_back(*loop, axis);
    if (!loop) loop = axis;
  }
  const Axes summed = equation.add_missing_loops(loop_of, loops);
  const Space space(std::move(loops));
  std::vector<Expr> indices, result_at;
  for (const auto& loop : loop_of) indices.push_back(space[*loop]);
  for (Equation::Label label : equation.result()) result_at.push_back(indices[label]);
  Expr product = op.operand("dy").at(std::move(result_at));
  for (std::size_t k = 0; k < xs.size(); ++k) {
    if (k != position) product = product * equation.read(k, xs[k], indices);
  }
  for (const auto& [first, second] : diagonals) {
    product = select(equal(space[first], space[second]), product, 0.0);
  }
  op.define("dx", sum_over_space(space, product, summed));
}

}  // namespace

TENON_DEFINE_OP(einsum_gradient) = OpSpec<Attrs>{
    .name = "einsum_gradient",
    .summary =
        "how a loss changes with the operand of einsum at `position`, from dy and its operands",
    .operands = {"dy", variadic("xs")},
    .results = {"dx"},
    .attrs = {{"equation", &Attrs::equation, required}, {"position", &Attrs::position}},
    .infer = infer,
    .lower = lower,
    .gradient = [](const Attrs&, Gradient& op) { add_derived_gradient(op, "dx"); },
    .layout = logical_order(),
    .examples = {"dy: F i k; xs: F i j; xs: F j k; equation = \"ij,jk->ik\""},
};

}  // namespace tenon::inline ops::einsum_gradient_op
