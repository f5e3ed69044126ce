#include "expr/lowering.h"
#include "ops/definition/elements.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"

#include <cmath>

namespace tenon::inline ops::range_op {
namespace {

[[noreturn]] void refuse_delta() { throw Error("range: delta is 0"); }

Dim count_of_values(const Tensor& start, const Tensor& limit, const Tensor& delta) {
  if (is_integer(start.dtype())) {
    const std::int64_t step = delta.integer_at(0);
    if (step == 0) refuse_delta();
    return max(ceil_div(Dim(limit.integer_at(0)) - start.integer_at(0), step), 0);
  }
  const double step = delta.real_at(0);
  if (step == 0) refuse_delta();
  const double count = std::ceil((limit.real_at(0) - start.real_at(0)) / step);
  if (!(count < static_cast<double>(kMaxExtent))) {
    throw Error("range: there is no end to it").got(count, " elements");
  }
  return static_cast<std::int64_t>(std::max(count, 0.0));
}

TensorType infer(const NoAttrs&, const OperandTypes& in) {
  const TensorType& type = require_elements(in, "start", reals);
  for (std::string_view other : {"limit", "delta"}) require_same_dtype("range", type, in[other]);
  for (std::string_view name : {"start", "limit", "delta"}) require_one_element(in, name);
  const Tensor *start = in.value("start"), *limit = in.value("limit"), *delta = in.value("delta");
  if (start && limit && delta) return {type.dtype, {count_of_values(*start, *limit, *delta)}, {}};
  const Dims *first = in.known("start"), *last = in.known("limit"), *step = in.known("delta");
  if (first && last && step && step->front().is_constant()) {
    if (step->front() == Dim(0)) refuse_delta();
    return {type.dtype, {max(ceil_div(last->front() - first->front(), step->front()), 0)}, {}};
  }
  return {type.dtype, {in.unknown()}, {}};
}

void lower(const NoAttrs&, Lowering& op) {
  const TensorType& y = op.result_type("y");
  // Narrow floats cannot represent large counts.
  const bool is_narrow = is_float(y.dtype) && info(y.dtype).bits < 32;
  const DType dtype = is_narrow ? DType::F32 : y.dtype;
  const auto scalar = [&](std::string_view name) {
    return reshape(cast(op.operand(name), dtype), {});
  };
  const Expr position = cast(Space(y.dims)[0], dtype);
  op.define("y", cast(scalar("start") + position * scalar("delta"), y.dtype));
}

}  // namespace

TENON_DEFINE_OP(range) = OpSpec<NoAttrs>{
    .name = "range",
    .summary = "start, start + delta, … up to limit, which is left out",
    .operands = {"start", "limit", "delta"},
    .results = {"y"},
    .infer = infer,
    .lower = lower,
    .gradient = not_differentiable("the number of elements depends on the operands"),
    .layout = logical_order(),
    .examples = {"start: I; limit: I; delta: I"},
};

}  // namespace tenon::inline ops::range_op
