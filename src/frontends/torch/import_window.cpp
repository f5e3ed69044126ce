#include "frontends/torch/import_node.h"
#include "ops/definition/var_ops.h"

#include <algorithm>
#include <optional>

namespace tenon::frontends::torch {
namespace {

// Number of spatial axes by the operator's name: "max_pool2d".
std::size_t spatial_axes(const NodeImport& n) {
  for (const char digit : {'1', '2', '3'}) {
    if (n.op.find(std::string{digit, 'd'}) != std::string_view::npos)
      return static_cast<std::size_t>(digit - '0');
  }
  n.unsupported("a window of unknown rank");
}

// Rank of an operand that has channels and spatial axes, and of the result.
std::size_t checked_rank(const NodeImport& n, Var x, std::size_t axes) {
  const std::size_t rank = n.rank(x);
  if (rank < axes + 1 || rank < 2 || n.result_dims().size() != rank)
    n.unsupported("an image without spatial axes");
  return rank;
}

// Pools accept an image without the batch's axis.
Var with_batch(NodeImport& n, Var x, std::size_t axes) {
  if (n.rank(x) != axes + 1) return x;
  Dims dims = n.dims(x);
  dims.insert(dims.begin(), Dim(1));
  return reshape_to(x, dims);
}
void pool_results(NodeImport& n, std::vector<Var> values) {
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (n.rank(values[k]) == n.result_type(k).dims.size()) continue;
    Dims dims = n.dims(values[k]);
    dims.erase(dims.begin());
    values[k] = reshape_to(values[k], dims);
  }
  n.results(values);
}

Attributes pool_attrs(NodeImport& n, std::size_t axes) {
  const Dims kernel = n.for_axes("kernel_size", axes, 1);
  Dims pads = n.for_axes("padding", axes, 0);
  pads.insert(pads.end(), pads.begin(), pads.end());
  return {{"kernel_shape", kernel},
          {"strides", n.integers("stride").empty() ? kernel : n.for_axes("stride", axes, 1)},
          {"pads", pads},
          {"ceil_mode", n.flag("ceil_mode")}};
}

void import_max_pool(NodeImport& n) {
  const std::size_t axes = spatial_axes(n);
  Attributes attrs = pool_attrs(n, axes);
  attrs.set("dilations", n.for_axes("dilation", axes, 1));
  const Var x = with_batch(n, n.first(), axes);
  if (n.result_count() == 1) return pool_results(n, {n.call("max_pool", {x}, attrs)});
  // PyTorch counts positions within a channel, Tenon within the whole tensor.
  std::vector<Var> made = n.call_all("max_pool", {x}, attrs, 2);
  const Dims dims = n.dims(x);
  const Var plane = n.number_of(product({dims.begin() + 2, dims.end()}));
  made[1] = n.call("mod", {made[1], plane});
  pool_results(n, made);
}

void import_average_pool(NodeImport& n) {
  const std::size_t axes = spatial_axes(n);
  if (n.has("divisor_override")) n.unsupported("a divisor of its own");
  Attributes attrs = pool_attrs(n, axes);
  attrs.set("count_include_pad", n.flag("count_include_pad", true));
  pool_results(n, {n.call("average_pool", {with_batch(n, n.first(), axes)}, attrs)});
}

// Means over windows that divide an axis as evenly as possible, as a product with a matrix.
Var adaptive_mean(NodeImport& n, Var x, std::size_t axis, std::int64_t count) {
  const Dim given = n.dims(x)[axis];
  if (!given.is_constant()) n.unsupported("windows that differ over a symbolic extent");
  const std::int64_t extent = given.constant();
  constexpr std::int64_t kMaxElements = 1 << 22;
  if (extent < 1 || count < 1 || extent > kMaxElements / count)
    n.unsupported("its windows are too many");
  std::vector<double> weights(static_cast<std::size_t>(extent * count), 0);
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t begin = k * extent / count, end = ((k + 1) * extent + count - 1) / count;
    for (std::int64_t i = begin; i < end; ++i)
      weights[static_cast<std::size_t>(i * count + k)] = 1.0 / static_cast<double>(end - begin);
  }
  const Var matrix = n.build.constant(Tensor::of<double>(n.dtype(x), {extent, count}, weights));
  const std::size_t last = n.rank(x) - 1;
  return n.swapped(n.call("matmul", {n.swapped(x, axis, last), matrix}), axis, last);
}

void import_adaptive_average(NodeImport& n) {
  Var x = n.first();
  const std::size_t axes = spatial_axes(n), rank = checked_rank(n, x, axes);
  const Dims& wanted = n.result_dims();
  std::vector<std::int64_t> whole;
  for (std::size_t axis = rank - axes; axis < rank; ++axis) {
    if (wanted[axis] == Dim(1)) whole.push_back(static_cast<std::int64_t>(axis));
  }
  if (whole.size() == axes) return n.result(n.call("reduce_mean", {x}, {{"axes", as_dims(whole)}}));
  const Dims dims = n.dims(x);
  Dims kernel;
  bool is_even = true;
  for (std::size_t axis = rank - axes; axis < rank; ++axis) {
    kernel.push_back(floor_div(dims[axis], wanted[axis]));
    is_even = is_even && kernel.back() * wanted[axis] == dims[axis] && kernel.back().is_constant();
  }
  if (is_even) {
    const Var image = with_batch(n, x, axes);
    return pool_results(
        n, {n.call("average_pool", {image}, {{"kernel_shape", kernel}, {"strides", kernel}})});
  }
  for (std::size_t axis = rank - axes; axis < rank; ++axis) {
    if (dims[axis] == wanted[axis]) continue;
    if (!wanted[axis].is_constant()) n.unsupported("a symbolic number of windows");
    x = adaptive_mean(n, x, axis, wanted[axis].constant());
  }
  n.result(x);
}

void import_adaptive_max(NodeImport& n) {
  const Var x = n.first();
  const std::size_t axes = spatial_axes(n), rank = checked_rank(n, x, axes);
  Dims kernel;
  for (std::size_t axis = rank - axes; axis < rank; ++axis) {
    kernel.push_back(floor_div(n.dims(x)[axis], n.result_dims()[axis]));
    if (!kernel.back().is_constant() || !(kernel.back() * n.result_dims()[axis] == n.dims(x)[axis]))
      n.unsupported("windows of several sizes");
  }
  pool_results(n, {n.call("max_pool", {with_batch(n, x, axes)},
                          {{"kernel_shape", kernel}, {"strides", kernel}})});
}

bool all_zero(const Dims& dims) {
  return std::ranges::all_of(dims, [](const Dim& dim) { return dim == Dim(0); });
}

struct Sampling {
  std::string mode, coordinates, rounding;
};
Sampling sampling_of(NodeImport& n) {
  if (n.op.find("nearest_exact") != std::string_view::npos)
    return {"nearest", "half_pixel", "round_prefer_ceil"};
  if (n.op.find("nearest") != std::string_view::npos) return {"nearest", "asymmetric", "floor"};
  const bool is_cubic = n.op.find("bicubic") != std::string_view::npos;
  return {is_cubic ? "cubic" : "linear", n.flag("align_corners") ? "align_corners" : "half_pixel",
          "round_prefer_floor"};
}

// With stated scale factors, coordinates follow them and not the ratio of the sizes.
void import_resize(NodeImport& n) {
  const Var x = n.first();
  const std::size_t rank = checked_rank(n, x, 2), axes = rank - 2;
  const Sampling sampling = sampling_of(n);
  std::vector<double> scales = n.reals("scale_factors");
  for (const std::string_view name : {"scales_d", "scales_h", "scales_w", "scales"}) {
    if (n.has(name)) scales.push_back(n.real(name));
  }
  std::vector<std::int64_t> spatial;
  for (std::size_t axis = 2; axis < rank; ++axis)
    spatial.push_back(static_cast<std::int64_t>(axis));
  Attributes attrs{{"axes", as_dims(spatial)},
                   {"mode", word(sampling.mode)},
                   {"coordinates", word(sampling.coordinates)},
                   {"rounding", word(sampling.rounding)},
                   {"antialias", n.op.ends_with("_aa")}};
  if (scales.size() == axes && sampling.coordinates != "align_corners") {
    attrs.set("scales", scales);
  } else {
    attrs.set("sizes", Dims(n.result_dims().begin() + 2, n.result_dims().end()));
  }
  n.result(n.call("resize", {x}, attrs));
}

void import_grid_sample(NodeImport& n) {
  static constexpr const char* kModes[] = {"linear", "nearest", "cubic"};
  static constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};
  const auto mode = static_cast<std::size_t>(n.integer("interpolation_mode", 0)),
             padding = static_cast<std::size_t>(n.integer("padding_mode", 0));
  if (mode > 2 || padding > 2) n.unsupported("its mode is not known");
  n.result(n.call("grid_sample", {n.first(), n.tensor("grid")},
                  {{"mode", word(kModes[mode])},
                   {"padding", word(kPaddings[padding])},
                   {"align_corners", n.flag("align_corners")}}));
}

// The elements of every window, [batch, channels * window, windows].
void import_im2col(NodeImport& n) {
  const Var x = n.first();
  const Dims kernel = n.for_axes("kernel_size", 2, 1), strides = n.for_axes("stride", 2, 1),
             dilations = n.for_axes("dilation", 2, 1), padding = n.for_axes("padding", 2, 0);
  if (n.rank(x) != 4) n.unsupported("an image without a batch");
  constexpr std::int64_t kMaxWindow = 1024;
  const std::int64_t rows = kernel[0].constant(), columns = kernel[1].constant();
  if (rows < 1 || columns < 1 || rows > kMaxWindow || columns > kMaxWindow / rows)
    n.unsupported("its windows are too large");
  const Dims pads = {0, 0, padding[0], padding[1], 0, 0, padding[0], padding[1]};
  const Var padded = all_zero(padding) ? x : n.call("pad", {x}, {{"pads", pads}});
  const Dims dims = n.dims(padded);
  Dims counts;
  for (std::size_t k = 0; k < 2; ++k) {
    const Dim span = dilations[k] * (kernel[k] - 1) + 1;
    counts.push_back(floor_div(dims[k + 2] - span, strides[k]) + 1);
  }
  std::vector<Var> parts;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const Dims starts = {dilations[0] * row, dilations[1] * column};
      const Var part = n.call("slice", {padded},
                              {{"starts", starts},
                               {"ends", Dims{starts[0] + (counts[0] - 1) * strides[0] + 1,
                                             starts[1] + (counts[1] - 1) * strides[1] + 1}},
                               {"axes", Dims{2, 3}},
                               {"steps", strides}});
      parts.push_back(reshape_to(part, {dims[0], dims[1], 1, counts[0] * counts[1]}));
    }
  }
  const Var joined =
      parts.size() == 1 ? parts.front() : n.call("concat", parts, {{"axis", Dim(2)}});
  n.result(reshape_to(joined, n.result_dims()));
}

void import_col2im(NodeImport& n) {
  Dims pads = n.for_axes("padding", 2, 0);
  pads.insert(pads.end(), pads.begin(), pads.end());
  n.result(n.call("col2im", {n.first()},
                  {{"image_shape", n.extents("output_size")},
                   {"block_shape", n.extents("kernel_size")},
                   {"strides", n.for_axes("stride", 2, 1)},
                   {"dilations", n.for_axes("dilation", 2, 1)},
                   {"pads", pads}}));
}

constexpr Handler window_table[] = {
    {"max_pool1d", import_max_pool},
    {"max_pool2d", import_max_pool},
    {"max_pool3d", import_max_pool},
    {"max_pool1d_with_indices", import_max_pool},
    {"max_pool2d_with_indices", import_max_pool},
    {"max_pool3d_with_indices", import_max_pool},
    {"avg_pool1d", import_average_pool},
    {"avg_pool2d", import_average_pool},
    {"avg_pool3d", import_average_pool},
    {"adaptive_avg_pool1d", import_adaptive_average},
    {"adaptive_avg_pool2d", import_adaptive_average},
    {"adaptive_avg_pool3d", import_adaptive_average},
    {"_adaptive_avg_pool2d", import_adaptive_average},
    {"_adaptive_avg_pool3d", import_adaptive_average},
    {"adaptive_max_pool1d", import_adaptive_max},
    {"adaptive_max_pool2d", import_adaptive_max},
    {"adaptive_max_pool3d", import_adaptive_max},
    {"upsample_nearest1d", import_resize},
    {"upsample_nearest2d", import_resize},
    {"upsample_nearest3d", import_resize},
    {"_upsample_nearest_exact1d", import_resize},
    {"_upsample_nearest_exact2d", import_resize},
    {"_upsample_nearest_exact3d", import_resize},
    {"upsample_linear1d", import_resize},
    {"upsample_bilinear2d", import_resize},
    {"_upsample_bilinear2d_aa", import_resize},
    {"upsample_bicubic2d", import_resize},
    {"_upsample_bicubic2d_aa", import_resize},
    {"upsample_trilinear3d", import_resize},
    {"grid_sampler", import_grid_sample},
    {"grid_sampler_2d", import_grid_sample},
    {"grid_sampler_3d", import_grid_sample},
    {"im2col", import_im2col},
    {"col2im", import_col2im},
};

}  // namespace

std::span<const Handler> window_handlers() { return window_table; }

}  // namespace tenon::frontends::torch
