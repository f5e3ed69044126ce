#include "expr/fourier.h"
#include "expr/lowering.h"
#include "ir/assumptions.h"
#include "ops/definition/derived_gradient.h"
#include "ops/definition/elements.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"

namespace tenon::inline ops::stft_op {
namespace {

struct Attrs {
  Dim frame_step = 1;
  std::optional<Dim> frame_length;
  bool onesided = true;
};

Dim frame_length(const Attrs& attrs, const TensorType& signal, const TensorType* window) {
  if (attrs.frame_length) return *attrs.frame_length;
  return window ? window->dims[0] : signal.dims[1];
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& signal = in["signal"];
  require_rank("stft", "signal", signal, 3);
  if (in.has("window")) {
    require_rank("stft", "window", in["window"], 1);
    require_same_dtype("stft", signal, in["window"]);
  }
  if (attrs.frame_step.range().hi < 1) {
    throw Error("stft: the step between frames must be positive").got(attrs.frame_step);
  }
  require_elements(in, "signal", floats);
  if (!assume_one_or(signal.dims[2], 2)) {
    throw Error("stft: the last axis must hold real, or real and imaginary parts")
        .expected("signal: [batch, time, 1 or 2]")
        .got(signal);
  }
  const Dim length = frame_length(attrs, signal, in.has("window") ? &in["window"] : nullptr);
  require_at_least("stft", "the length of a frame", length, 1);
  const Dim frames = floor_div(signal.dims[1] - length, attrs.frame_step) + 1;
  const Dim bins = attrs.onesided ? floor_div(length, 2) + 1 : length;
  return {signal.dtype, {signal.dims[0], max(frames, 0), bins, 2}, {}};
}

void lower(const Attrs& attrs, Lowering& op) {
  const TensorType& y = op.result_type("y");
  const bool has_window = op.has("window");
  const Dim length = frame_length(attrs, op.operand_type("signal"),
                                  has_window ? &op.operand_type("window") : nullptr);
  const Expr x = cast(op.operand("signal"), DType::F64);
  const Space space({y.dims[0], y.dims[1], y.dims[2], 1, length});
  const Expr time = space[4];
  const auto part = [&](std::int64_t which) {
    const std::vector<Expr> at{space[0], space[1] * attrs.frame_step + time, integer(which)};
    // With a symbolic last extent, imaginary parts may be absent at run time.
    const bool is_there = which == 0 || x.dims().back() == Dim(2);
    const Expr value = is_there ? x.at(at) : x.at_or(at, 0);
    if (!has_window) return value;
    return value * cast(op.operand("window"), DType::F64).at_or({time}, 0);
  };
  ComplexExpr signal{part(0), {}};
  if (!(x.dims().back() == Dim(1))) signal.imaginary = part(1);
  const ComplexExpr terms = rotated_by(signal, space[2], time, length, false);
  op.define("y",
            cast(concat({sum_out(terms.real, {4}), sum_out(terms.imaginary, {4})}, -1), y.dtype));
}

}  // namespace

TENON_DEFINE_OP(stft) = OpSpec<Attrs>{
    .name = "stft",
    .summary =
        "the Fourier transforms of windowed frames of a signal [batch, time, 1 or 2], one every "
        "`frame_step`; gives [batch, frame, frequency, 2]",
    .operands = {"signal", optional("window")},
    .results = {"y"},
    .attrs = {{"frame_step", &Attrs::frame_step, dynamic_required},
              {"frame_length", &Attrs::frame_length, dynamic},
              {"onesided", &Attrs::onesided}},
    .infer = infer,
    .lower = lower,
    .gradient = derived_gradient<Attrs>,
    .layout = logical_order(),
    .examples = {"signal: F b 8 1; frame_step = 2; frame_length = 4"},
};

}  // namespace tenon::inline ops::stft_op
