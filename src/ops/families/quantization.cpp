#include "ops/families/quantization.h"

#include "base/error.h"
#include "ir/assumptions.h"

namespace tenon::inline ops {
namespace {

bool is_per_tensor(const Dims& dims) {
  return dims.empty() || (dims.size() == 1 && dims.front() == Dim(1));
}

bool fits(const TensorType& x, const TensorType& scale, const Granularity& granularity) {
  if (is_per_tensor(scale.dims)) return true;
  const std::size_t axis = normal_axis("quantization", granularity.axis, x.rank());
  if (granularity.block_size == 0) {
    return scale.rank() == 1 && assume_one_or(scale.dims.front(), x.dims[axis]);
  }
  if (scale.rank() != x.rank()) return false;
  for (std::size_t k = 0; k < x.rank(); ++k) {
    const Dim extent = k == axis ? ceil_div(x.dims[k], granularity.block_size) : x.dims[k];
    if (!assume_equal(scale.dims[k], extent)) return false;
  }
  return true;
}

}  // namespace

void require_granularity(const OperandTypes& in, const Granularity& granularity) {
  const TensorType &x = in["x"], &scale = in["scale"];
  if (granularity.block_size < 0) {
    throw Error(concat(in.op_name(), ": attribute 'block_size' is negative"))
        .expected("a number of elements, or 0 for one scale for each position")
        .got(granularity.block_size);
  }
  if (!fits(x, scale, granularity)) {
    throw Error(concat(in.op_name(), ": scale does not fit x"))
        .expected(granularity.block_size == 0
                      ? concat("one scale, or one for each position along axis ", granularity.axis)
                      : concat("one scale for each ", granularity.block_size,
                               " positions along axis ", granularity.axis))
        .got("x: ", x, ", scale: ", scale);
  }
  if (!in.has("zero_point")) return;
  const TensorType& zero_point = in["zero_point"];
  if (is_per_tensor(zero_point.dims) && is_per_tensor(scale.dims)) return;
  bool is_same_shape = zero_point.rank() == scale.rank();
  for (std::size_t k = 0; is_same_shape && k < scale.rank(); ++k) {
    is_same_shape = assume_equal(zero_point.dims[k], scale.dims[k]);
  }
  if (is_same_shape) return;
  throw Error(concat(in.op_name(), ": zero_point does not fit scale"))
      .expected("the shape of scale")
      .got("scale: ", scale, ", zero_point: ", zero_point);
}

Expr spread(const Expr& parameter, const Expr& x, const Granularity& granularity) {
  if (is_per_tensor(parameter.dims())) return reshape(parameter, {});
  const std::size_t axis = normal_axis("quantization", granularity.axis, x.rank());
  if (granularity.block_size == 0) {
    Dims dims(x.rank(), Dim(1));
    dims[axis] = parameter.dims().front();  // may be 1 at run time
    return reshape(parameter, std::move(dims));
  }
  std::vector<Expr> coordinates = Space(x.dims()).indices();
  coordinates[axis] = floor_div(coordinates[axis], static_cast<double>(granularity.block_size));
  return parameter.at(std::move(coordinates));
}

DType computing_dtype(DType dtype) { return dtype == DType::F64 ? DType::F64 : DType::F32; }

}  // namespace tenon::inline ops
