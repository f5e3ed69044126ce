#include "ops/lowering.h"
#include "ops/op_spec.h"
#include "ops/window.h"

namespace tenon {
namespace {

struct Attrs : WindowAttrs {
  Dims image_shape;
  std::vector<std::int64_t> block_shape;
};

std::vector<Window> windows_of(const Attrs& attrs) {
  const Dims block(attrs.block_shape.begin(), attrs.block_shape.end());
  return resolve_windows("col2im", attrs, attrs.image_shape, block);
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& x = in["x"];
  require_rank("col2im", "x", x, 3);
  Dim elements = 1, blocks = 1;
  for (const Window& window : windows_of(attrs)) {
    elements = elements * window.kernel;
    blocks = blocks * window.count;
  }
  if (provably_different(x.dims[2], blocks) || provably_different(mod(x.dims[1], elements), 0)) {
    throw Error("col2im: columns do not fit the image")
        .expected("x: [N, a multiple of ", elements, ", ", blocks, "]")
        .got(x);
  }
  Dims dims{x.dims[0], floor_div(x.dims[1], elements)};
  dims.insert(dims.end(), attrs.image_shape.begin(), attrs.image_shape.end());
  return {x.dtype, std::move(dims), {}};
}

void lower(const Attrs& attrs, Lowering& op) {
  const std::vector<Window> windows = windows_of(attrs);
  const Dims& image = op.result_type("y").dims;
  Dims columns{image[0], image[1]}, loops = image;
  for (const Window& window : windows) columns.push_back(window.kernel);
  for (const Window& window : windows) columns.push_back(window.count);
  Axes block_axes;
  for (const Window& window : windows) {
    block_axes.push_back(static_cast<std::int64_t>(loops.size()));
    loops.push_back(window.kernel);
  }
  const std::vector<Expr> indices = Space(loops).indices();
  const auto spatial = indices.begin() + 2;
  const auto rank = static_cast<std::ptrdiff_t>(windows.size());
  const std::vector<Expr> offsets(spatial + rank, indices.end());
  const CoveringPositions covering =
      covering_positions(windows, {spatial, spatial + rank}, offsets);
  std::vector<Expr> at{indices[0], indices[1]};
  at.insert(at.end(), offsets.begin(), offsets.end());
  for (const LogicalIndex& position : covering.positions) at.push_back(position.whole);
  const Expr value = reshape(op.operand("x"), std::move(columns)).at_or(std::move(at), 0);
  op.define("y", sum_out(where_hit(covering, value), block_axes));
}

}  // namespace

TENON_DEFINE_OP(col2im) = OpSpec<Attrs>{
    .name = "col2im",
    .summary = "the image whose blocks the columns of x are; blocks that overlap add up",
    .operands = {"x"},
    .results = {"y"},
    .attrs = with_window_fields<Attrs>({{"image_shape", &Attrs::image_shape, late_required},
                                        {"block_shape", &Attrs::block_shape, late_required}}),
    .infer = infer,
    .lower = lower,
    // TODO: a gradient, when there is an op that takes an image apart into columns.
    .layout = logical_order(),
};

}  // namespace tenon
