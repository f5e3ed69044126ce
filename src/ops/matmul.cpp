#include "expr/broadcasting.h"
#include "expr/lowering.h"
#include "ir/assumptions.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/var_ops.h"
#include "ops/families/matrices.h"

namespace tenon::inline ops::matmul_op {
namespace {

struct Attrs {
  /// Dtype of the products and the result; narrow integers are widened to it.
  std::optional<DType> out_dtype;
};

// Operands as batches of matrices: a vector is a row on the left and a column on the right.
struct Shapes {
  Dims a, b;                               // at least two axes
  Dims batch;                              // broadcast
  bool has_row = true, has_column = true;  // in the result

  const Dim& rows() const { return a[a.size() - 2]; }
  const Dim& inner() const { return a.back(); }
  const Dim& columns() const { return b.back(); }
  Dims result() const {
    Dims dims = batch;
    if (has_row) dims.push_back(rows());
    if (has_column) dims.push_back(columns());
    return dims;
  }
};

Shapes shapes_of(const TensorType& a, const TensorType& b) {
  if (a.rank() == 0 || b.rank() == 0) {
    throw Error("matmul: an operand is a scalar")
        .expected("at least one axis each")
        .got("a: ", a, ", b: ", b)
        .hint("multiply by a scalar with mul");
  }
  Shapes shapes{a.dims, b.dims, {}, a.rank() > 1, b.rank() > 1};
  if (!shapes.has_row) shapes.a.insert(shapes.a.begin(), 1);
  if (!shapes.has_column) shapes.b.push_back(1);
  if (!assume_equal(shapes.inner(), shapes.b[shapes.b.size() - 2])) {
    Error error("matmul: inner extents differ");
    error.expected(shapes.has_column ? "a.shape[-1] == b.shape[-2]" : "a.shape[-1] == b.shape[-1]")
        .got("a: ", a, ", b: ", b);
    if (a.rank() > 1 && b.rank() > 1 && a.dims.back() == b.dims.back()) {
      error.hint("transpose the last two axes of b");
    }
    throw error;
  }
  try {
    shapes.batch = broadcast_dims({shapes.a.begin(), shapes.a.end() - 2},
                                  {shapes.b.begin(), shapes.b.end() - 2});
  } catch (const Error&) {
    throw Error("matmul: stacks of matrices do not broadcast")
        .expected("leading extents that are equal or 1")
        .got("a: ", a, ", b: ", b);
  }
  return shapes;
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  if (!attrs.out_dtype) require_same_dtype("matmul", in["a"], in["b"]);
  return {attrs.out_dtype.value_or(in["a"].dtype), shapes_of(in["a"], in["b"]).result(), {}};
}

Expr element_of(const Expr& operand, const Dims& dims, const Dims& batch, const Space& space,
                std::size_t row_axis, std::size_t column_axis) {
  std::vector<Expr> at;
  const std::size_t leading = dims.size() - 2;
  for (std::size_t k = 0; k < leading; ++k) {
    const std::size_t axis = batch.size() - leading + k;
    const bool repeats = dims[k] == Dim(1) && !(batch[axis] == Dim(1));
    at.push_back(repeats ? integer(0) : broadcast_index(space[axis], dims[k], batch[axis]));
  }
  at.push_back(space[row_axis]);
  at.push_back(space[column_axis]);
  return reshape(operand, dims).at(std::move(at));
}

void lower(const Attrs&, Lowering& op) {
  const Shapes shapes = shapes_of(op.operand_type("a"), op.operand_type("b"));
  Dims loops = shapes.batch;
  const std::size_t row = loops.size(), column = row + 1, inner = row + 2;
  loops.insert(loops.end(), {shapes.rows(), shapes.columns(), shapes.inner()});
  const Space space(std::move(loops));
  const DType dtype = op.result_type("y").dtype;
  const Expr a = element_of(op.operand("a"), shapes.a, shapes.batch, space, row, inner);
  const Expr b = element_of(op.operand("b"), shapes.b, shapes.batch, space, inner, column);
  const Expr sums = sum_out(cast(a, dtype) * cast(b, dtype), {static_cast<std::int64_t>(inner)});
  op.define("y", reshape(sums, shapes.result()));
}

void gradient(const Attrs&, Gradient& op) {
  Builder& build = op.build();
  const TensorType &a_type = op.operand_type("a"), &b_type = op.operand_type("b");
  const Shapes shapes = shapes_of(a_type, b_type);
  Dims matrix_dims = shapes.batch;
  matrix_dims.insert(matrix_dims.end(), {shapes.rows(), shapes.columns()});
  const Var a = reshape_to(op.operand("a"), shapes.a), b = reshape_to(op.operand("b"), shapes.b);
  const Var dy = reshape_to(cast_to(op.upstream("y"), a_type.dtype), matrix_dims);
  const Var da = build.call("matmul", {dy, with_last_axes_swapped(build, b)});
  const Var db = build.call("matmul", {with_last_axes_swapped(build, a), dy});
  op.add("a", reshape_to(sum_to_shape(da, shapes.a), a_type.dims));
  op.add("b", reshape_to(sum_to_shape(db, shapes.b), b_type.dims));
}

}  // namespace

TENON_DEFINE_OP(matmul) = OpSpec<Attrs>{
    .name = "matmul",
    .summary =
        "products of matrices in the last two axes; leading axes broadcast, vectors have one",
    .operands = {"a", "b"},
    .results = {"y"},
    .attrs = {{"out_dtype", &Attrs::out_dtype}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
    .precision = Precision::Integer,
    .examples = {"a: F m k; b: F k n", "a: F b m k; b: F b k n", "a: F b m k; b: F k n",
                 "a: F k; b: F k n", "a: I m k; b: I k n"},
};

}  // namespace tenon::inline ops::matmul_op
