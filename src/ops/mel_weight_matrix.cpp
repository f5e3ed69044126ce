#include "expr/lowering.h"
#include "ops/definition/elements.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"

#include <cmath>

namespace tenon::inline ops::mel_weight_matrix_op {
namespace {

struct Attrs {
  Dim mel_bins = 1, dft_length = 1;
  DType dtype = DType::F32;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  for (const char* operand : {"sample_rate", "lower_edge", "upper_edge"}) {
    require_elements(in, operand, reals);
    require_one_element(in, operand);
  }
  require_numbers("mel_weight_matrix", "dtype", attrs.dtype);
  require_at_least("mel_weight_matrix", "attribute 'mel_bins'", attrs.mel_bins, 0);
  require_at_least("mel_weight_matrix", "attribute 'dft_length'", attrs.dft_length, 0);
  return {attrs.dtype, {floor_div(attrs.dft_length, 2) + 1, attrs.mel_bins}, {}};
}

Expr scalar(const Lowering& op, std::string_view name) {
  return cast(reshape(op.operand(name), {}), DType::F64);
}

Expr mels_of(const Expr& hertz) { return log(hertz / 700.0 + 1.0) * (2595.0 / std::log(10.0)); }
Expr hertz_of(const Expr& mels) { return (exp(mels * (std::log(10.0) / 2595.0)) - 1.0) * 700.0; }

// Triangular filters with corners evenly spaced on the mel scale, at integer spectral bins.
void lower(const Attrs& attrs, Lowering& op) {
  const TensorType& y = op.result_type("y");
  const Space space(y.dims);
  const Expr low = mels_of(scalar(op, "lower_edge")), high = mels_of(scalar(op, "upper_edge"));
  const Expr step = (high - low) / cast(extent_expr(attrs.mel_bins + 2), DType::F64);
  const Expr mel_bin = cast(space[1], DType::F64), bin = cast(space[0], DType::F64);
  const auto corner = [&](double offset) {
    const Expr hertz = hertz_of((mel_bin + offset) * step + low);
    const Expr points = cast(extent_expr(attrs.dft_length + 1), DType::F64);
    return floor(points * hertz / scalar(op, "sample_rate"));
  };
  const Expr left = corner(0), top = corner(1), right = corner(2);
  const Expr rising =
      select(equal(top, left), literal(DType::F64, 1), (bin - left) / max(top - left, 1.0));
  const Expr falling = (right - bin) / max(right - top, 1.0);
  const Expr is_rising = bin <= top && bin >= left, is_falling = bin >= top && bin < right;
  // At the peak both sides apply: the falling side has priority unless its width is zero.
  const Expr weight =
      select(is_falling, falling, select(is_rising, rising, literal(DType::F64, 0)));
  op.define("y", cast(weight, y.dtype));
}

}  // namespace

TENON_DEFINE_OP(mel_weight_matrix) = OpSpec<Attrs>{
    .name = "mel_weight_matrix",
    .summary =
        "the weights [spectral bin, mel bin] that turn a spectrum into mel bins between two edges "
        "in hertz",
    .operands = {"sample_rate", "lower_edge", "upper_edge"},
    .results = {"y"},
    .attrs = {{"mel_bins", &Attrs::mel_bins, dynamic_required},
              {"dft_length", &Attrs::dft_length, dynamic_required},
              {"dtype", &Attrs::dtype}},
    .infer = infer,
    .lower = lower,
    .gradient = not_differentiable("its corners are whole bins"),
    .layout = logical_order(),
    .examples = {"sample_rate: i64; lower_edge: F; upper_edge: F; mel_bins = 3; dft_length = 4"},
};

}  // namespace tenon::inline ops::mel_weight_matrix_op
