#include "documents/chainer/functions.h"

#include <algorithm>

namespace tenon::documents::chainer {
namespace {

constexpr std::int64_t kUnknownExtent = PartialShapes::kUnknown;

// Spatial axes of a window function; `kernel` is set if the attributes contain it.
struct WindowGeometry {
  WindowAxis axes[2];
  std::int64_t kernel[2] = {kUnknownExtent, kUnknownExtent};
  std::int64_t out[2] = {kUnknownExtent, kUnknownExtent};  // from attributes
  std::int64_t groups = 1;
};

WindowGeometry windows_of(const FunctionView& view, bool has_kernel) {
  WindowGeometry windows;
  static constexpr std::string_view kStride[] = {"sy", "sx"}, kPad[] = {"ph", "pw"},
                                    kDilation[] = {"dy", "dx"}, kKernel[] = {"kh", "kw"},
                                    kOut[] = {"outh", "outw"};
  for (std::size_t k = 0; k < 2; ++k) {
    windows.axes[k].stride = view.integer(kStride[k], 1, kMaxWindow);
    windows.axes[k].pad = view.integer(kPad[k], 0, kMaxWindow);
    windows.axes[k].dilation = view.integer(kDilation[k], 1, kMaxWindow, 1);
    windows.axes[k].covers_all = view.flag("cover_all", false);
    if (has_kernel) windows.kernel[k] = view.integer(kKernel[k], 1, kMaxWindow);
    if (view.has(kOut[k])) windows.out[k] = view.integer(kOut[k], 1, kMaxExtentAttribute);
  }
  windows.groups = view.integer("groups", 1, kMaxExtentAttribute, 1);
  return windows;
}

// Extents of x, y and the kernel along one spatial axis, each possibly unknown.
struct AxisOf {
  std::size_t x, y, axis;
  std::size_t w = kNone;                 // weights whose axis is the kernel
  std::int64_t kernel = kUnknownExtent;  // or a number
};

bool relate_axis(PartialShapes& shapes, const WindowAxis& window, const AxisOf& of) {
  const std::int64_t x = shapes.extent(of.x, of.axis), y = shapes.extent(of.y, of.axis);
  const std::int64_t kernel = of.w == kNone ? of.kernel : shapes.extent(of.w, of.axis);
  if (kernel != kUnknownExtent && (kernel < 1 || kernel > kMaxWindow)) {
    return shapes.refuse(of.w == kNone ? of.x : of.w, "has no kernel that could be");
  }
  if (x != kUnknownExtent && kernel != kUnknownExtent) {
    const std::int64_t count = window.count(x, kernel);
    if (count < 1)
      return shapes.refuse(of.x, concat("an extent of ", x, " has no room for a window"));
    return shapes.set_extent(of.y, of.axis, count);
  }
  if (y == kUnknownExtent || (x == kUnknownExtent && kernel == kUnknownExtent)) return true;
  if (x != kUnknownExtent) {
    // Only a stride of one determines the kernel.
    if (window.stride != 1 || of.w == kNone) return true;
    const std::int64_t steps = x + 2 * window.pad - y;
    if (steps < 0 || steps % window.dilation != 0) {
      return shapes.refuse(of.w, concat("no kernel leads from an extent of ", x, " to ", y));
    }
    return shapes.set_extent(of.w, of.axis, steps / window.dilation + 1);
  }
  const std::int64_t least = (y - 1) * window.stride + window.reach(kernel) - 2 * window.pad;
  if (window.stride == 1) return shapes.set_extent(of.x, of.axis, least);
  if (shapes.count(of.x)) return true;
  // Without another constraint, prefers the extent that the stride divides.
  const std::int64_t even = y * window.stride;
  return shapes.set_extent(of.x, of.axis, window.count(even, kernel) == y ? even : least);
}

bool relate_images(PartialShapes& shapes, std::size_t x, std::size_t y) {
  return shapes.set_rank(x, 4) && shapes.set_rank(y, 4) && shapes.same_extent(x, 0, y, 0);
}

bool relate_channels(PartialShapes& shapes, std::size_t x, std::size_t w, std::size_t axis,
                     std::int64_t groups) {
  const std::int64_t channels = shapes.extent(x, 1), per_group = shapes.extent(w, axis);
  if (per_group != kUnknownExtent)
    return per_group <= kMaxExtentAttribute / groups && shapes.set_extent(x, 1, per_group * groups);
  if (channels == kUnknownExtent) return true;
  if (channels % groups != 0)
    return shapes.refuse(x, concat("has ", channels, " channels in ", groups, " groups"));
  return shapes.set_extent(w, axis, channels / groups);
}

bool relate_bias(PartialShapes& shapes, const FunctionView& view, std::size_t y) {
  if (view.input_count() < 3) return true;
  return shapes.set_rank(view.input(2), 1) && shapes.same_extent(view.input(2), 0, y, 1);
}

Relation relate_convolution(const FunctionView& view) {
  const WindowGeometry windows = windows_of(view, false);
  return [view, windows](PartialShapes& shapes) {
    const std::size_t x = view.input(0), w = view.input(1), y = view.output();
    if (!relate_images(shapes, x, y) || !shapes.set_rank(w, 4)) return false;
    if (!shapes.same_extent(y, 1, w, 0) || !relate_channels(shapes, x, w, 1, windows.groups))
      return false;
    if (!relate_bias(shapes, view, y)) return false;
    for (std::size_t k = 0; k < 2; ++k) {
      if (!relate_axis(shapes, windows.axes[k], {.x = x, .y = y, .axis = 2 + k, .w = w}))
        return false;
    }
    return true;
  };
}

// Without another constraint on a deconvolution's kernel, it fills the result to the last row.
bool relate_whole_kernel(PartialShapes& shapes, const WindowAxis& window, const AxisOf& of) {
  const std::int64_t x = shapes.extent(of.x, of.axis), y = shapes.extent(of.y, of.axis);
  if (shapes.count(of.w) || x == kUnknownExtent || y == kUnknownExtent) return true;
  const std::int64_t reach = y + 2 * window.pad - window.stride * (x - 1);
  if (reach < 1 || (reach - 1) % window.dilation != 0) return true;
  return shapes.set_extent(of.w, of.axis, (reach - 1) / window.dilation + 1);
}

// A deconvolution relates its result and operand like a convolution with exchanged roles.
Relation relate_deconvolution(const FunctionView& view) {
  const WindowGeometry windows = windows_of(view, false);
  return [view, windows](PartialShapes& shapes) {
    const std::size_t x = view.input(0), w = view.input(1), y = view.output();
    if (!relate_images(shapes, x, y) || !shapes.set_rank(w, 4)) return false;
    if (!shapes.same_extent(x, 1, w, 0) || !relate_channels(shapes, y, w, 1, windows.groups))
      return false;
    if (!relate_bias(shapes, view, y)) return false;
    for (std::size_t k = 0; k < 2; ++k) {
      WindowAxis back = windows.axes[k];
      back.covers_all = false;
      if (windows.out[k] != kUnknownExtent) {
        if (!shapes.set_extent(y, 2 + k, windows.out[k])) return false;
        if (!relate_whole_kernel(shapes, back, {.x = x, .y = y, .axis = 2 + k, .w = w}))
          return false;
        if (!relate_axis(shapes, back, {.x = y, .y = x, .axis = 2 + k, .w = w})) return false;
        continue;
      }
      const std::int64_t extent = shapes.extent(x, 2 + k), kernel = shapes.extent(w, 2 + k);
      if (extent == kUnknownExtent || kernel == kUnknownExtent || kernel < 1 || kernel > kMaxWindow)
        continue;
      const std::int64_t whole = (extent - 1) * back.stride + back.reach(kernel) - 2 * back.pad;
      if (!shapes.set_extent(y, 2 + k, whole)) return false;
    }
    return true;
  };
}

Relation relate_pooling(const FunctionView& view) {
  const WindowGeometry windows = windows_of(view, true);
  return [view, windows](PartialShapes& shapes) {
    const std::size_t x = view.input(0), y = view.output();
    if (!relate_images(shapes, x, y) || !shapes.same_extent(x, 1, y, 1)) return false;
    for (std::size_t k = 0; k < 2; ++k) {
      const AxisOf of{.x = x, .y = y, .axis = 2 + k, .kernel = windows.kernel[k]};
      if (!relate_axis(shapes, windows.axes[k], of)) return false;
    }
    return true;
  };
}

Relation relate_unpooling(const FunctionView& view) {
  const WindowGeometry windows = windows_of(view, true);
  return [view, windows](PartialShapes& shapes) {
    const std::size_t x = view.input(0), y = view.output();
    if (!relate_images(shapes, x, y) || !shapes.same_extent(x, 1, y, 1)) return false;
    for (std::size_t k = 0; k < 2; ++k) {
      const WindowAxis& axis = windows.axes[k];
      const std::int64_t extent = shapes.extent(x, 2 + k);
      std::int64_t out = windows.out[k];
      if (out == kUnknownExtent && extent != kUnknownExtent) {
        out = axis.stride * (extent - 1) + windows.kernel[k] - 2 * axis.pad -
              (axis.covers_all ? axis.stride - 1 : 0);
      }
      if (out != kUnknownExtent && !shapes.set_extent(y, 2 + k, out)) return false;
    }
    return true;
  };
}

Relation relate_resize(const FunctionView& view) {
  const std::int64_t height = view.integer("out_H", 1, kMaxExtentAttribute),
                     width = view.integer("out_W", 1, kMaxExtentAttribute);
  return [view, height, width](PartialShapes& shapes) {
    const std::size_t x = view.input(0), y = view.output();
    return relate_images(shapes, x, y) && shapes.same_extent(x, 1, y, 1) &&
           shapes.set_extent(y, 2, height) && shapes.set_extent(y, 3, width);
  };
}

// Returns the end pad that contains every window of Chainer's rule.
std::int64_t end_pad(const WindowAxis& axis, std::int64_t extent, std::int64_t kernel) {
  const std::int64_t used = (axis.count(extent, kernel) - 1) * axis.stride + axis.reach(kernel);
  return std::max(axis.pad, used - extent - axis.pad);
}

std::vector<Attr> window_attributes(const WindowGeometry& windows, const Attr::Integers& ends) {
  std::vector<Attr> attrs;
  const WindowAxis &a = windows.axes[0], &b = windows.axes[1];
  if (a.stride != 1 || b.stride != 1)
    attrs.emplace_back("strides", Attr::Integers{a.stride, b.stride});
  if (a.dilation != 1 || b.dilation != 1)
    attrs.emplace_back("dilations", Attr::Integers{a.dilation, b.dilation});
  const Attr::Integers pads{a.pad, b.pad, ends[0], ends[1]};
  if (pads != Attr::Integers(4, 0)) attrs.emplace_back("pads", pads);
  if (windows.groups != 1) attrs.emplace_back("groups", windows.groups);
  return attrs;
}

std::vector<Var> build_convolution(const FunctionView& view, Builder& build,
                                   const std::vector<Var>& in) {
  const WindowGeometry windows = windows_of(view, false);
  const std::vector<std::int64_t> x = build.shape(in[0]), w = build.shape(in[1]);
  Attr::Integers ends;
  for (std::size_t k = 0; k < 2; ++k) {
    const WindowAxis& axis = windows.axes[k];
    ends.push_back(axis.covers_all ? end_pad(axis, x[2 + k], w[2 + k]) : axis.pad);
  }
  return {build.call("conv", in, window_attributes(windows, ends))};
}

std::vector<Var> build_deconvolution(const FunctionView& view, Builder& build,
                                     const std::vector<Var>& in) {
  const WindowGeometry windows = windows_of(view, false);
  const std::vector<std::int64_t> x = build.shape(in[0]), w = build.shape(in[1]);
  std::vector<Attr> attrs = window_attributes(windows, {windows.axes[0].pad, windows.axes[1].pad});
  Attr::Integers more;
  for (std::size_t k = 0; k < 2; ++k) {
    const WindowAxis& axis = windows.axes[k];
    const std::int64_t plain = (x[2 + k] - 1) * axis.stride + axis.reach(w[2 + k]) - 2 * axis.pad;
    more.push_back(windows.out[k] == kUnknownExtent ? 0 : windows.out[k] - plain);
  }
  if (more != Attr::Integers(2, 0)) attrs.emplace_back("output_padding", more);
  return {build.call("conv_transpose", in, attrs)};
}

std::vector<Attr> pool_attributes(const WindowGeometry& windows, const std::vector<std::int64_t>& x,
                                  bool may_say_ceil) {
  // If both rules for the last window agree, uses Tenon's own attribute.
  bool is_plain = true, agrees = true;
  Attr::Integers ends;
  for (std::size_t k = 0; k < 2; ++k) {
    const WindowAxis& axis = windows.axes[k];
    const std::int64_t count = axis.count(x[2 + k], windows.kernel[k]);
    is_plain = is_plain && !axis.covers_all;
    agrees = agrees && (count - 1) * axis.stride < x[2 + k] + axis.pad;
    ends.push_back(axis.covers_all ? end_pad(axis, x[2 + k], windows.kernel[k]) : axis.pad);
  }
  const bool says_ceil = may_say_ceil && !is_plain && agrees;
  if (says_ceil) ends = {windows.axes[0].pad, windows.axes[1].pad};
  std::vector<Attr> attrs = window_attributes(windows, ends);
  attrs.emplace_back("kernel_shape", Attr::Integers{windows.kernel[0], windows.kernel[1]});
  if (says_ceil) attrs.emplace_back("ceil_mode", true);
  return attrs;
}

std::vector<Var> build_max_pooling(const FunctionView& view, Builder& build,
                                   const std::vector<Var>& in) {
  const WindowGeometry windows = windows_of(view, true);
  return {
      build.call_all("max_pool", in, pool_attributes(windows, build.shape(in[0]), true), {""})[0]};
}

// Chainer includes padding in the average.
std::vector<Var> build_average_pooling(const FunctionView& view, Builder& build,
                                       const std::vector<Var>& in) {
  const WindowGeometry windows = windows_of(view, true);
  std::vector<Attr> attrs = pool_attributes(windows, build.shape(in[0]), false);
  const bool has_pads =
      std::any_of(attrs.begin(), attrs.end(), [](const Attr& attr) { return attr.name == "pads"; });
  if (has_pads) attrs.emplace_back("count_include_pad", true);
  return {build.call("average_pool", in, attrs)};
}

std::vector<Var> build_unpooling(const FunctionView& view, Builder& build,
                                 const std::vector<Var>& in) {
  const WindowGeometry windows = windows_of(view, true);
  const std::vector<std::int64_t> x = build.shape(in[0]);
  Attr::Integers sizes;
  for (std::size_t k = 0; k < 2; ++k) {
    const WindowAxis& axis = windows.axes[k];
    const std::int64_t out =
        windows.out[k] == kUnknownExtent ? axis.stride * x[2 + k] : windows.out[k];
    if (windows.kernel[k] != axis.stride || axis.pad != 0 || out != axis.stride * x[2 + k]) {
      throw Error("unpooling with windows that overlap or are cut", ErrorKind::Unsupported);
    }
    sizes.push_back(out);
  }
  return {build.call("resize", in,
                     {{"sizes", sizes},
                      {"axes", Attr::Integers{2, 3}},
                      {"coordinates", "asymmetric"},
                      {"rounding", "floor"}})};
}

std::vector<Var> build_resize(const FunctionView& view, Builder& build,
                              const std::vector<Var>& in) {
  if (!view.flag("align_corners", true) || (view.has("mode") && view.text("mode") != "bilinear"))
    throw Error("a resize other than bilinear between corners", ErrorKind::Unsupported);
  const Attr::Integers sizes{view.integer("out_H", 1, kMaxExtentAttribute),
                             view.integer("out_W", 1, kMaxExtentAttribute)};
  return {build.call("resize", in,
                     {{"sizes", sizes},
                      {"axes", Attr::Integers{2, 3}},
                      {"mode", "linear"},
                      {"coordinates", "align_corners"}})};
}

double product_of(const Shape& shape, std::size_t from) {
  double product = 1;
  for (std::size_t axis = from; axis < shape.size(); ++axis)
    product *= static_cast<double>(shape[axis]);
  return product;
}

// Each element of y sums the elements of one filter; in a deconvolution, each element of x is
// spread by one.
double convolution_products(const FunctionView& view, const std::vector<Shape>& shapes) {
  return product_of(shapes[view.output()], 0) * product_of(shapes[view.input(1)], 1);
}
double deconvolution_products(const FunctionView& view, const std::vector<Shape>& shapes) {
  return product_of(shapes[view.input(0)], 0) * product_of(shapes[view.input(1)], 1);
}

std::vector<Retained> retained_by_pooling(const FunctionView& view) {
  // cuDNN reads both; the functions' own kernels read stored positions.
  if (view.flag("_used_cudnn", true)) return {{{0}, {0}}};
  return {{}, {{0}, {}}, {{0}, {0}}};
}

std::int64_t hidden_by_max_pooling(const FunctionView& view) {
  return view.flag("_used_cudnn", true) ? 0 : view.bytes(view.output());
}

}  // namespace

std::span<const FunctionRule> window_functions() {
  static const FunctionRule rules[] = {
      {.name = "Convolution2DFunction",
       .least_inputs = 2,
       .most_inputs = 3,
       .relate = relate_convolution,
       .build = build_convolution,
       .retained = retains_inputs,
       .multiply_adds = convolution_products},
      {.name = "Deconvolution2DFunction",
       .least_inputs = 2,
       .most_inputs = 3,
       .relate = relate_deconvolution,
       .build = build_deconvolution,
       .retained = retains_inputs,
       .multiply_adds = deconvolution_products},
      {.name = "MaxPooling2D",
       .relate = relate_pooling,
       .build = build_max_pooling,
       .retained = retained_by_pooling,
       .hidden_bytes = hidden_by_max_pooling},
      {.name = "AveragePooling2D",
       .relate = relate_pooling,
       .build = build_average_pooling,
       .retained = retained_by_pooling},
      {.name = "Unpooling2D",
       .relate = relate_unpooling,
       .build = build_unpooling,
       .retained = retains_nothing},
      {.name = "ResizeImages",
       .relate = relate_resize,
       .build = build_resize,
       .retained = retains_nothing},
  };
  return rules;
}

}  // namespace tenon::documents::chainer
