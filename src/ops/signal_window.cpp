#include "expr/lowering.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"

#include <numbers>

namespace tenon::inline ops::signal_window_op {
namespace {

enum class SignalWindowKind : std::uint8_t { Hann, Hamming, Blackman };

struct Attrs {
  SignalWindowKind kind = SignalWindowKind::Hann;
  Dim size = 1;
  bool periodic = true;
  DType dtype = DType::F32;
};

TensorType infer(const Attrs& attrs, const OperandTypes&) {
  require_numbers("signal_window", "dtype", attrs.dtype);
  return {attrs.dtype, {attrs.size}, {}};
}

// Weights of a cosine-sum window: constant, one period and two periods.
struct WindowWeights {
  double constant, once, twice;
};
WindowWeights weights_of(SignalWindowKind kind) {
  switch (kind) {
    case SignalWindowKind::Hann:
      return {0.5, -0.5, 0};
    case SignalWindowKind::Hamming:
      return {25.0 / 46.0, -21.0 / 46.0, 0};
    case SignalWindowKind::Blackman:
      return {0.42, -0.5, 0.08};
  }
  return {};
}

void lower(const Attrs& attrs, Lowering& op) {
  const Dim turn = attrs.periodic ? attrs.size : attrs.size - 1;
  const Expr position = cast(Space({attrs.size})[0], DType::F64);
  const Expr angle =
      position * (2 * std::numbers::pi) / cast(extent_expr(max(turn, 1)), DType::F64);
  const WindowWeights weights = weights_of(attrs.kind);
  Expr y = cos(angle) * weights.once + weights.constant;
  if (weights.twice != 0) y = y + cos(angle * 2.0) * weights.twice;
  op.define("y", cast(y, attrs.dtype));
}

}  // namespace

TENON_DEFINE_OP(signal_window) = OpSpec<Attrs>{
    .name = "signal_window",
    .summary = "a window of `size` points that fades in and out, to cut frames from signals",
    .operands = {},
    .results = {"y"},
    .attrs = {{"kind", &Attrs::kind, words("hann hamming blackman")},
              {"size", &Attrs::size, dynamic_required},
              {"periodic", &Attrs::periodic},
              {"dtype", &Attrs::dtype}},
    .infer = infer,
    .lower = lower,
    .gradient = not_differentiable("it reads nothing"),
    .examples = {"size = _"},
};

}  // namespace tenon::inline ops::signal_window_op
