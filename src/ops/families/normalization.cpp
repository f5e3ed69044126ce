#include "ops/families/normalization.h"

#include "base/error.h"
#include "ir/assumptions.h"

#include <algorithm>

namespace tenon::inline ops {

DType statistics_dtype(std::optional<DType> asked, DType x) {
  if (asked) return *asked;
  return x == DType::F64 ? DType::F64 : DType::F32;
}

Standardized standardize(const Expr& x, const Axes& axes, double epsilon) {
  Standardized y;
  y.mean = mean_over(x, axes);
  const Expr centred = x - y.mean;
  y.variance = mean_over(centred * centred, axes);
  y.inverse_deviation = 1.0 / sqrt(y.variance + epsilon);
  y.value = centred * y.inverse_deviation;
  return y;
}

Expr along_axis(const Expr& vector, std::size_t axis, std::size_t rank) {
  Dims dims(rank - axis, Dim(1));
  dims.front() = vector.extent(0);
  return reshape(vector, std::move(dims));
}

Var along_axis(Var vector, std::size_t axis, std::size_t rank) {
  Dims dims(rank - axis, Dim(1));
  dims.front() = vector.builder().type(vector).tensor().dims.front();
  return reshape_to(vector, dims);
}

Var sum_along_axis(Var x, std::size_t axis) {
  Axes others;
  for (std::size_t k = 0; k < x.builder().rank(x); ++k) {
    if (k != axis) others.push_back(static_cast<std::int64_t>(k));
  }
  if (others.empty()) return x;
  return x.builder().call("reduce_sum", {x}, {{"axes", others}, {"keep_axes", false}});
}

void require_vector(const OperandTypes& in, std::string_view operand, std::size_t axis) {
  require_rank(in.op_name(), operand, in[operand], 1);
  if (assume_equal(in[operand].dims[0], in["x"].dims[axis])) return;
  throw Error(concat(in.op_name(), ": operand '", operand, "' has the wrong extent"))
      .expected(in["x"].dims[axis], " elements, as x has along axis ", axis)
      .got(in[operand], " for x: ", in["x"]);
}

void require_floats(const OperandTypes& in, std::initializer_list<std::string_view> operands) {
  for (const std::string_view operand : operands) {
    if (!is_float(in[operand].dtype))
      throw Error(concat(in.op_name(), ": ", operand, " must be of floats")).got(in[operand]);
  }
}

void require_broadcast_to_x(const OperandTypes& in, std::string_view operand) {
  const TensorType& x = in["x"];
  const Dims& own = in[operand].dims;
  {
    const AssumptionScope weaker;  // discarded: the checks below assume more
    broadcast_type(in.op_name(), x, in[operand], x.dtype);
  }
  bool is_larger = own.size() > x.rank();
  for (std::size_t k = 0; !is_larger && k < own.size(); ++k) {
    is_larger = !assume_one_or(own[k], x.dims[x.rank() - own.size() + k]);
  }
  if (!is_larger) return;
  throw Error(concat(in.op_name(), ": operand '", operand, "' is larger than x"))
      .expected("extents of x or 1, counted from the last axis")
      .got(in[operand], " for x: ", x);
}

Axes axes_from(std::size_t axis, std::size_t rank) {
  Axes axes;
  for (std::size_t k = axis; k < rank; ++k) axes.push_back(static_cast<std::int64_t>(k));
  return axes;
}

Axes axes_inside(std::size_t axis, std::size_t rank) {
  Axes axes;
  for (std::size_t k = 1; k < rank; ++k) {
    if (k != axis) axes.push_back(static_cast<std::int64_t>(k));
  }
  return axes;
}

std::vector<AttrField<TrailingNormAttrs>> trailing_norm_fields() {
  return {{"axis", &TrailingNormAttrs::axis},
          {"epsilon", &TrailingNormAttrs::epsilon},
          {"stash", &TrailingNormAttrs::stash}};
}

Var mean_over(Var x, const Axes& axes) {
  return x.builder().call("reduce_mean", {x}, {{"axes", axes}, {"noop_if_empty", true}});
}

Var share_of_mean(Var flow, Var x, const Axes& axes) {
  const Dims dims = x.builder().type(x).tensor().dims;  // appending nodes may move the type
  const Var ones = expand_to(x.builder().scalar(1, x), dims);
  return flow / x.builder().call("reduce_sum", {ones}, {{"axes", axes}, {"noop_if_empty", true}});
}

StandardizedVar standardize(Var x, const Axes& axes, double epsilon) {
  StandardizedVar y;
  const Var centred = x - mean_over(x, axes);
  const Var variance = mean_over(centred * centred, axes);
  y.inverse_deviation = 1.0 / x.builder().call("sqrt", {variance + epsilon});
  y.value = centred * y.inverse_deviation;
  return y;
}

// The mean and the deviation both depend on x: dx is dy minus its mean and minus its projection
// onto y.
Var standardize_gradient(const StandardizedVar& y, const Axes& axes, Var dy) {
  const Var along = y.value * mean_over(dy * y.value, axes);
  return y.inverse_deviation * (dy - mean_over(dy, axes) - along);
}

}  // namespace tenon::inline ops
