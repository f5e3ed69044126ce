#include "expr/fourier.h"
#include "expr/lowering.h"
#include "ir/assumptions.h"
#include "ops/definition/derived_gradient.h"
#include "ops/definition/elements.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"

namespace tenon::inline ops::dft_op {
namespace {

struct Attrs {
  std::optional<Dim> length;
  std::int64_t axis = -2;
  bool inverse = false;
  bool onesided = false;
};

// The last axis holds real parts alone (extent 1) or real and imaginary parts (2).
std::size_t signal_axis(const Attrs& attrs, const TensorType& x) {
  const std::size_t axis = x.rank() < 2 ? 0 : normal_axis("dft", attrs.axis, x.rank());
  if (axis + 1 >= x.rank() || !assume_one_or(x.dims.back(), 2)) {
    throw Error("dft: the last axis must hold real, or real and imaginary parts")
        .expected("a tensor [..., 1] or [..., 2] and an axis before the last")
        .got(x, ", axis ", attrs.axis);
  }
  return axis;
}

// A one-sided spectrum omits the mirrored frequencies.
Dim transform_length(const Attrs& attrs, const Dim& extent) {
  if (attrs.length) return *attrs.length;
  return attrs.inverse && attrs.onesided ? 2 * (extent - 1) : extent;
}

Dim half(const Dim& length) { return floor_div(length, 2) + 1; }

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const std::size_t axis = signal_axis(attrs, require_elements(in, "x", floats));
  TensorType y{in["x"].dtype, in["x"].dims, {}};
  const Dim length = transform_length(attrs, y.dims[axis]);
  require_at_least("dft", "the number of points", length, 1);
  y.dims[axis] = attrs.onesided && !attrs.inverse ? half(length) : length;
  y.dims.back() = attrs.onesided && attrs.inverse ? 1 : 2;
  return y;
}

void lower(const Attrs& attrs, Lowering& op) {
  const TensorType& y = op.result_type("y");
  const std::size_t axis = signal_axis(attrs, op.operand_type("x"));
  const Expr x = cast(op.operand("x"), DType::F64);
  const Dim extent = x.dims()[axis], length = transform_length(attrs, extent);
  const bool is_mirrored = attrs.onesided && attrs.inverse;
  // Appends the reduction axis; elements past the operand's extent are zero.
  Dims dims = y.dims;
  dims.back() = 1;
  dims.push_back(min(extent, is_mirrored ? half(length) : length));
  const Space space(dims);
  const std::int64_t summed = static_cast<std::int64_t>(dims.size()) - 1;
  const Expr source = space[dims.size() - 1], target = space[axis];
  const auto part = [&](std::int64_t which) {
    std::vector<Expr> at = space.indices();
    at.pop_back();
    at[axis] = source;
    at.back() = integer(which);
    // With a symbolic last extent, imaginary parts may be absent at run time.
    const bool is_there = which == 0 || x.dims().back() == Dim(2);
    return is_there ? x.at(std::move(at)) : x.at_or(std::move(at), 0);
  };
  ComplexExpr signal{part(0), {}};
  if (!(x.dims().back() == Dim(1))) signal.imaginary = part(1);
  ComplexExpr terms = rotated_by(signal, target, source, length, attrs.inverse);
  const Expr scale = cast(extent_expr(attrs.inverse ? length : Dim(1)), DType::F64);
  if (is_mirrored) {
    const Expr is_single = equal(source, 0.0) || equal(source * 2.0, length);
    const Expr total = sum_out(select(is_single, terms.real, terms.real * 2.0), {summed});
    op.define("y", cast(total / scale, y.dtype));
    return;
  }
  const Expr real = sum_out(terms.real, {summed}), imaginary = sum_out(terms.imaginary, {summed});
  op.define("y", cast(concat({real, imaginary}, -1) / scale, y.dtype));
}

}  // namespace

TENON_DEFINE_OP(dft) = OpSpec<Attrs>{
    .name = "dft",
    .summary =
        "the discrete Fourier transform along `axis`, of `length` points (padded with zeros or "
        "cut); "
        "the last axis holds real (and imaginary) parts. One-sided: a real signal's first half of "
        "the "
        "spectrum, or, inverse, the real signal of such a half",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"length", &Attrs::length, dynamic},
              {"axis", &Attrs::axis, dynamic},
              {"inverse", &Attrs::inverse},
              {"onesided", &Attrs::onesided}},
    .infer = infer,
    .lower = lower,
    .gradient = derived_gradient<Attrs>,
    .layout = logical_order(),
    .examples = {"x: F n l 1; axis = 1", "x: F n l 2; axis = 1; length = 4"},
};

}  // namespace tenon::inline ops::dft_op
