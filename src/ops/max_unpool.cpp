#include "ops/definition/derived_gradient.h"
#include "ops/definition/elements.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"
#include "ops/definition/operand_shapes.h"
#include "ops/families/pooling.h"

namespace tenon::inline ops::max_unpool_op {
namespace {

struct Attrs : WindowAttrs {
  std::vector<std::int64_t> kernel_shape;
  /// All extents of the result; by default the extents that invert the pooling.
  std::optional<Dims> output_shape;
};

// Shape in which max_pool's indices count.
Dims pooled_shape(const Attrs& attrs, const TensorType& x) {
  if (x.rank() != attrs.kernel_shape.size() + 2) {
    throw Error("max_unpool: window and input differ in spatial rank")
        .expected("a rank of ", attrs.kernel_shape.size() + 2)
        .got(x);
  }
  Dims dims{x.dims[0], x.dims[1]};
  const Dims kernel(attrs.kernel_shape.begin(), attrs.kernel_shape.end());
  for (const Window& window : plain_windows("max_unpool", attrs, kernel)) {
    const Dim count = x.dims[dims.size()];
    dims.push_back((count - Dim(1)) * Dim(window.stride) + window.reach() - window.begin -
                   window.end);
  }
  return dims;
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& x = in["x"];
  Dims dims = pooled_shape(attrs, x);
  if (attrs.output_shape) {
    if (attrs.output_shape->size() != dims.size()) {
      throw Error("max_unpool: attribute 'output_shape' has the wrong length")
          .expected(dims.size(), " entries")
          .got(attrs.output_shape->size());
    }
    dims = *attrs.output_shape;
  }
  for (const Dim& extent : dims)
    require_at_least("max_unpool", "an extent of the result", extent, 0);
  require_elements(in, "indices", integers);
  require_dims("max_unpool", "indices", in["indices"], x.dims);
  return {x.dtype, std::move(dims), x.layout};
}

void lower(const Attrs& attrs, Lowering& op) {
  const Dims shape = pooled_shape(attrs, op.operand_type("x"));
  const Expr x = op.operand("x");
  const Expr zeros = broadcast(literal(x.dtype(), 0), {product(shape)});
  const Expr flat = scatter(Reduction::Last, zeros, {cast(op.operand("indices"), DType::I64)}, x);
  const Expr image = reshape(flat, shape);
  const Space space(op.result_type("y").dims);
  op.define("y", image.at_or(space.indices(), 0));
}

}  // namespace

TENON_DEFINE_OP(max_unpool) = OpSpec<Attrs>{
    .name = "max_unpool",
    .summary = "zeros, with every element of x where `indices` of max_pool say it came from",
    .operands = {"x", "indices"},
    .results = {"y"},
    .attrs = with_window_fields<Attrs>({{"kernel_shape", &Attrs::kernel_shape, required},
                                        {"output_shape", &Attrs::output_shape, dynamic}}),
    .infer = infer,
    .lower = lower,
    .gradient = derived_gradient<Attrs>,
    .layout = logical_order(),
    .examples = {"x: F n c 2 2; indices: i64 n c 2 2; kernel_shape = 2 2; strides = 2 2"},
};

}  // namespace tenon::inline ops::max_unpool_op
