#include "ir/assumptions.h"
#include "ops/definition/derived_gradient.h"
#include "ops/definition/operand_shapes.h"
#include "ops/families/indexing.h"
#include "ops/families/movement.h"

namespace tenon::inline ops::tensor_scatter_op {
namespace {

enum class TensorScatterMode { Linear, Circular };

struct Attrs {
  std::int64_t axis = -2;
  TensorScatterMode mode = TensorScatterMode::Linear;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType &cache = in["cache"], &update = in["update"];
  require_same_dtype("tensor_scatter", cache, update);
  require_rank("tensor_scatter", "update", update, cache.rank());
  const std::size_t along = normal_axis("tensor_scatter", attrs.axis, cache.rank());
  if (along == 0) throw Error("tensor_scatter: axis 0 is the batch").expected("another axis");
  if (in.has("positions")) {
    require_integer("tensor_scatter", "positions", in["positions"]);
    require_dims("tensor_scatter", "positions", in["positions"], {cache.dims.at(0)});
  }
  for (std::size_t axis = 0; axis < cache.rank(); ++axis) {
    const bool fits = axis == along ? assume_at_most(update.dims[axis], cache.dims[axis])
                                    : assume_equal(cache.dims[axis], update.dims[axis]);
    if (fits) continue;
    throw Error("tensor_scatter: the update does not fit the cache").got(cache, " and ", update);
  }
  return cache;
}

// KV cache update as a gather: each element of the cache tests whether an update covers it.
void lower(const Attrs& attrs, Lowering& op) {
  const Expr cache = op.operand("cache");
  const std::size_t axis = normal_axis("tensor_scatter", attrs.axis, cache.rank());
  const Space space(cache.dims());
  Expr place = space[axis];
  if (op.has("positions")) {
    place = place - cast(op.operand("positions"), DType::I64).at({space[0]});
    if (attrs.mode == TensorScatterMode::Circular) place = mod(place, cache.dims()[axis]);
  }
  op.define("y", op.operand("update").at_or(with_coordinate(space, axis, place), cache));
}

}  // namespace

TENON_DEFINE_OP(tensor_scatter) = OpSpec<Attrs>{
    .name = "tensor_scatter",
    .summary = "cache with `update` written along `axis`, from positions[b] on in batch b",
    .operands = {"cache", "update", optional("positions")},
    .results = {"y"},
    .attrs = {{"axis", &Attrs::axis}, {"mode", &Attrs::mode, words("linear circular")}},
    .infer = infer,
    .lower = lower,
    .gradient = derived_gradient<Attrs>,
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
    .examples = {"cache: F b h 4 d; update: F b h 2 d"},
};

}  // namespace tenon::inline ops::tensor_scatter_op
