#include "ops/families/convolution.h"

#include "base/error.h"
#include "ir/assumptions.h"
#include "ops/definition/var_ops.h"
#include "ops/families/phase_decomposition.h"

namespace tenon::inline ops {
namespace {

constexpr std::size_t channel_axis = 1;

// Loops of one sum: the axes of the result first, then the reduction axes.
struct ConvolutionLoops {
  Dims dims;
  std::vector<AxisLoops> result;
  std::size_t result_count = 0;

  // `parts` is the number of separately looped parts of each axis (channels of a group, phases of a
  // stride), so that coordinates need no division.
  ConvolutionLoops(const AxisMap& map, const Dims& logical, const Dims& parts) {
    result = map.loops(dims, logical, parts);
    result_count = dims.size();
  }
  AxisLoops add(const Dim& extent) {
    dims.push_back(extent);
    return {dims.size() - 1, {}, 1};
  }
  AxisLoops add_blocked(const Dim& extent, std::int64_t block) {
    if (block == 1) return add(extent);
    const AxisLoops outer = add(floor_div(extent, block));
    return {outer.outer, add(block).outer, block};
  }
  std::vector<AxisLoops> add_spatial(const Dims& extents) {
    std::vector<AxisLoops> loops;
    for (const Dim& extent : extents) loops.push_back(add(extent));
    return loops;
  }
  Expr of(const Expr& product, const Dims& physical) const {
    Axes reduced;
    for (std::size_t axis = result_count; axis < dims.size(); ++axis) {
      reduced.push_back(static_cast<std::int64_t>(axis));
    }
    return reshape(sum_out(product, reduced), physical);
  }
};

std::vector<Expr> indices_of(const Space& space, const std::vector<AxisLoops>& loops,
                             std::size_t first = 0) {
  std::vector<Expr> indices;
  for (std::size_t k = first; k < loops.size(); ++k) indices.push_back(loops[k].index(space).whole);
  return indices;
}

std::vector<LogicalIndex> with_leading(std::vector<LogicalIndex> leading,
                                       const std::vector<Expr>& spatial) {
  leading.insert(leading.end(), spatial.begin(), spatial.end());
  return leading;
}

bool is_split_by(const LogicalIndex& channel, const Dim& per_group) {
  return channel.inner.is_defined() && channel.inner_extent == per_group;
}

Expr group_of(const LogicalIndex& channel, const Dim& per_group) {
  if (per_group == Dim(1)) return channel.whole;
  return is_split_by(channel, per_group) ? channel.outer : floor_div(channel.whole, per_group);
}

LogicalIndex in_group(const LogicalIndex& channel, const Dim& per_group) {
  if (per_group == Dim(1)) return integer(0);
  return is_split_by(channel, per_group) ? channel.inner : mod(channel.whole, per_group);
}

Dims joined(Dims first, const Dims& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<Expr> input_positions(const Convolution& conv, const std::vector<Expr>& positions,
                                  const std::vector<Expr>& offsets) {
  std::vector<Expr> coordinates;
  for (std::size_t axis = 0; axis < conv.windows.size(); ++axis) {
    coordinates.push_back(input_position(conv.windows[axis], positions[axis], offsets[axis]));
  }
  return coordinates;
}

}  // namespace

void require_groups(std::string_view op, std::int64_t groups, const Dim& outputs) {
  if (groups < 1) throw Error(concat(op, ": attribute 'groups' must be at least 1")).got(groups);
  if (!assume_multiple(outputs, groups)) {
    throw Error(concat(op, ": the weights do not divide into the groups"))
        .expected("a multiple of ", groups, " as extent of the weights' axis O")
        .got(outputs);
  }
}

void require_extent(std::string_view op, std::string_view what, const Dim& got,
                    const Dim& expected) {
  if (assume_equal(got, expected)) return;
  throw Error(concat(op, ": ", what)).expected(expected).got(got);
}

void require_bias(std::string_view op, const OperandTypes& in, const Dim& channels) {
  if (!in.has("b")) return;
  require_rank(op, "b", in["b"], 1);
  require_extent(op, "the bias does not hold one number for each channel of the result",
                 in["b"].dims[0], channels);
}

Dims spatial_dims(const Dims& logical) { return {logical.begin() + 2, logical.end()}; }

Expr convolve(const Convolution& conv, const Expr& x, const Expr& w, DType dtype,
              double pad_value) {
  const bool is_grouped = conv.groups > 1;
  const Dim inputs = conv.inputs_per_group(), outputs = conv.outputs_per_group();
  Dims parts(conv.y.rank(), 1);
  if (is_grouped) parts[channel_axis] = outputs;
  ConvolutionLoops sum(conv.y, conv.y_dims, parts);
  const AxisLoops channel = sum.add_blocked(inputs, is_grouped ? 1 : conv.x.block(channel_axis));
  const std::vector<AxisLoops> kernel = sum.add_spatial(spatial_dims(conv.w_dims));
  const Space space(sum.dims);

  const LogicalIndex n = sum.result[0].index(space), o = sum.result[1].index(space);
  const LogicalIndex local = channel.index(space);
  const LogicalIndex c = is_grouped ? group_of(o, outputs) * inputs + local.whole : local;
  const std::vector<Expr> offsets = indices_of(space, kernel);
  const std::vector<Expr> positions =
      input_positions(conv, indices_of(space, sum.result, 2), offsets);
  const Expr image =
      read_padded(x, conv.windows, conv.x.coordinates(with_leading({n, c}, positions)), pad_value);
  const Expr weight = w.at(conv.w.coordinates(with_leading({o, local}, offsets)));
  return sum.of(cast(image, dtype) * cast(weight, dtype), conv.y.physical_dims("", conv.y_dims));
}

Expr convolve_transposed(const Convolution& conv, const Expr& y, const Expr& w) {
  const bool is_grouped = conv.groups > 1;
  const Dim inputs = conv.inputs_per_group(), outputs = conv.outputs_per_group();
  const PhaseDecomposition phases(conv.windows);
  const Dims extents = joined({conv.x_dims[0], conv.x_dims[1]}, phases.loop_extents());
  ConvolutionLoops sum(conv.x, extents,
                       joined({1, is_grouped ? inputs : 1}, phases.phase_counts()));
  const AxisLoops channel = sum.add_blocked(outputs, is_grouped ? 1 : conv.y.block(channel_axis));
  const std::vector<AxisLoops> steps = sum.add_spatial(phases.step_counts());
  const Space space(sum.dims);

  const LogicalIndex n = sum.result[0].index(space), c = sum.result[1].index(space);
  const LogicalIndex local = channel.index(space);
  const LogicalIndex o = is_grouped ? group_of(c, inputs) * outputs + local.whole : local;
  std::vector<LogicalIndex> places;
  for (std::size_t k = 2; k < sum.result.size(); ++k) places.push_back(sum.result[k].index(space));
  const PhaseDecomposition::Taps taps = phases.taps(places, indices_of(space, steps));
  std::vector<LogicalIndex> at{n, o};
  at.insert(at.end(), taps.positions.begin(), taps.positions.end());
  const Expr image = y.at_or(conv.y.coordinates(at), 0);
  const LogicalIndex in_weights = is_grouped ? in_group(c, inputs) : c;
  const Expr weight =
      phases.read_elements(w, conv.w.coordinates(with_leading({o, in_weights}, taps.elements)));
  const Expr looped =
      sum.of(where_true(taps.is_hit, image * weight), conv.x.physical_dims("", extents));
  return phases.cropped(looped, conv.x, conv.x_dims);
}

Expr correlate_for_weights(const Convolution& conv, const Expr& x, const Expr& y) {
  const Dim inputs = conv.inputs_per_group(), outputs = conv.outputs_per_group();
  Dims parts(conv.w.rank(), 1);
  if (conv.groups > 1) parts[0] = outputs;
  ConvolutionLoops sum(conv.w, conv.w_dims, parts);
  const AxisLoops batch = sum.add(conv.x_dims[0]);
  const std::vector<AxisLoops> places = sum.add_spatial(spatial_dims(conv.y_dims));
  const Space space(sum.dims);

  const LogicalIndex n = batch.index(space);
  const LogicalIndex o = sum.result[0].index(space), local = sum.result[1].index(space);
  const LogicalIndex c = conv.groups > 1 ? group_of(o, outputs) * inputs + local.whole : local;
  const std::vector<Expr> positions = indices_of(space, places);
  const std::vector<Expr> covered =
      input_positions(conv, positions, indices_of(space, sum.result, 2));
  const Expr image =
      read_padded(x, conv.windows, conv.x.coordinates(with_leading({n, c}, covered)), 0);
  const Expr result = y.at(conv.y.coordinates(with_leading({n, o}, positions)));
  return sum.of(image * result, conv.w.physical_dims("", conv.w_dims));
}

Expr add_bias(const Lowering& op, const AxisMap& map, const Expr& y) {
  if (!op.has("b")) return y;
  return y + cast(map.along(channel_axis, op.operand("b")), y.dtype());
}

Attributes convolution_attributes(const Convolution& conv, const Layout& out_layout) {
  Attributes attrs = window_attributes(conv.windows, out_layout);
  attrs.set("groups", Dim(conv.groups));
  return attrs;
}

Attributes transposed_attributes(const Convolution& conv, const Layout& out_layout) {
  Attributes attrs = convolution_attributes(conv, out_layout);
  attrs.set("pads", pads_of(conv.windows));
  attrs.set("output_shape", spatial_dims(conv.x_dims));
  return attrs;
}

std::vector<Window> exact_windows(std::vector<Window> windows) {
  for (Window& window : windows) {
    window.end = Dim(window.stride) * (window.count - Dim(1)) + window.reach() - window.extent -
                 window.begin;
  }
  return windows;
}

Var call_op(Builder& build, std::string_view op, const std::vector<Var>& operands,
            Attributes attrs) {
  return build.call_all(op, operands, std::move(attrs), {""}).front();
}

void add_bias_gradient(Gradient& op, const AxisMap& map, Var upstream) {
  if (!op.has("b")) return;
  const Var sums = op.build().call(
      "reduce_sum", {upstream}, {{"axes", map.axes_without(channel_axis)}, {"keep_axes", false}});
  op.add("b", reshape_to(sums, op.operand_type("b").dims));
}

}  // namespace tenon::inline ops
