#include "ops/definition/op_spec.h"
#include "ops/families/convolution.h"
#include "ops/families/pooling.h"

#include <algorithm>
#include <limits>

namespace tenon::inline ops::max_pool_op {
namespace {

enum class StorageOrder : std::uint8_t { RowMajor, ColumnMajor };

struct Attrs : PoolAttrs {
  /// Order in which `indices` count the spatial positions of x.
  StorageOrder index_order = StorageOrder::RowMajor;
};

ResultTypes infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType y = pooled_type("max_pool", attrs, in["x"]);
  TensorType indices = y;
  indices.dtype = DType::I64;
  return {Type(y), Type(indices)};
}

// Flat positions in x, in logical order for every layout.
Expr indices_of_greatest(const Attrs& attrs, const Pooling& pooling, const Expr& x) {
  Dims dims;
  const std::vector<AxisLoops> loops = pooling.y.loops(dims, pooling.y_dims);
  const Space space(std::move(dims));
  Expr position = positions_of_greatest(pooling, x);
  const Dims extents = spatial_dims(pooling.x_dims);
  if (attrs.index_order == StorageOrder::ColumnMajor) {
    const std::vector<Expr> coordinates = unflattened(position, extents);
    position = coordinates.back();
    for (std::size_t axis = extents.size() - 1; axis-- > 0;) {
      position = position * extents[axis] + coordinates[axis];
    }
  }
  const Expr image = loops[0].index(space).whole * pooling.x_dims[1] + loops[1].index(space).whole;
  return image * product(extents) + position;
}

void lower(const Attrs& attrs, Lowering& op) {
  const Pooling pooling = pooling_of("max_pool", attrs, op.operand_type("x"));
  const Expr x = op.operand("x");
  const Expr elements = window_elements(pooling, x, -std::numeric_limits<double>::infinity());
  op.define("y", fold_windows(pooling, Reduction::Max, elements));
  if (op.wants("indices")) op.define("indices", indices_of_greatest(attrs, pooling, x));
}

void gradient(const Attrs& attrs, Gradient& op) {
  const Pooling pooling = pooling_of("max_pool", attrs, op.operand_type("x"));
  op.add("x", call_op(op.build(), "max_pool_gradient", {op.operand("x"), op.upstream("y")},
                      pool_attributes(pooling, attrs, op.result_type("y").layout)));
}

}  // namespace

TENON_DEFINE_OP(max_pool) = OpSpec<Attrs>{
    .name = "max_pool",
    .summary = "the greatest element of each window of the image x, and where it lies in x",
    .operands = {"x"},
    .results = {"y", optional("indices")},
    .attrs = with_pool_fields<Attrs>({{"index_order", &Attrs::index_order,
                                       words("row_major column_major")}}),
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = any_layout(),
    .precision = Precision::MovesOnly,
    .examples = {"x: F n c h w; kernel_shape = 2 2",
                 "x: F n c h w; kernel_shape = 3 3; pads = 1 1 1 1; strides = 2 2"},
};

}  // namespace tenon::inline ops::max_pool_op
