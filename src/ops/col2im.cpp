#include "expr/lowering.h"
#include "ir/assumptions.h"
#include "ops/definition/derived_gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/families/phase_decomposition.h"

namespace tenon::inline ops::col2im_op {
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
  if (!assume_equal(x.dims[2], blocks) || !assume_multiple(x.dims[1], elements)) {
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
  const PhaseDecomposition phases(windows);
  const Dims& image = op.result_type("y").dims;
  Dims columns{image[0], image[1]}, extents = columns, parts{1, 1}, loops;
  for (const Window& window : windows) columns.push_back(window.kernel);
  for (const Window& window : windows) columns.push_back(window.count);
  for (const Dim& extent : phases.loop_extents()) extents.push_back(extent);
  for (const Dim& count : phases.phase_counts()) parts.push_back(count);

  const AxisMap map("col2im", Layout(), image.size(), "NC");
  const std::vector<AxisLoops> axes = map.loops(loops, extents, parts);
  Axes block_axes;
  for (const Dim& count : phases.step_counts()) {
    block_axes.push_back(static_cast<std::int64_t>(loops.size()));
    loops.push_back(count);
  }
  const Space space(loops);
  std::vector<LogicalIndex> places;
  std::vector<Expr> steps, at{space[0], space[1]};
  for (std::size_t k = 2; k < axes.size(); ++k) places.push_back(axes[k].index(space));
  for (std::int64_t axis : block_axes) steps.push_back(space[static_cast<std::size_t>(axis)]);
  const PhaseDecomposition::Taps taps = phases.taps(places, steps);
  at.insert(at.end(), taps.elements.begin(), taps.elements.end());
  for (const LogicalIndex& position : taps.positions) at.push_back(position.whole);
  const Expr value = reshape(op.operand("x"), std::move(columns)).at_or(std::move(at), 0);
  const Expr sums = sum_out(where_true(taps.is_hit, value), block_axes);
  op.define("y", phases.cropped(reshape(sums, extents), map, image));
}

}  // namespace

TENON_DEFINE_OP(col2im) = OpSpec<Attrs>{
    .name = "col2im",
    .summary = "the image whose blocks the columns of x are; blocks that overlap add up",
    .operands = {"x"},
    .results = {"y"},
    .attrs = with_window_fields<Attrs>({{"image_shape", &Attrs::image_shape, dynamic_required},
                                        {"block_shape", &Attrs::block_shape, dynamic_required}}),
    .infer = infer,
    .lower = lower,
    .gradient = derived_gradient<Attrs>,
    .layout = logical_order(),
    .examples = {"x: F n 8 9; image_shape = 4 4; block_shape = 2 2"},
};

}  // namespace tenon::inline ops::col2im_op
