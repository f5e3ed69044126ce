#include "zoo/layers.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace tenon::zoo {
namespace {

constexpr double kBiasDeviation = 0.05;

Attr::Integers all_sides(std::int64_t pad) { return {pad, pad, pad, pad}; }

bool is_zero(const Attr::Integers& pads) { return pads == all_sides(0); }

}  // namespace

Attr::Integers same_pads(std::int64_t size, std::int64_t kernel, std::int64_t stride) {
  const std::int64_t windows = (size + stride - 1) / stride;
  const std::int64_t total = std::max<std::int64_t>((windows - 1) * stride + kernel - size, 0);
  return {total / 2, total / 2, total - total / 2, total - total / 2};
}

Layers::Layers(const NetworkSettings& settings, std::string image_layout, WeightNames weight_names)
    : build_(settings.network_name()),
      network_name_(settings.network_name()),
      element_type_(settings.element_type()),
      is_channels_last_(image_layout == "NHWC"),
      names_(std::move(weight_names)) {}

std::string Layers::weight_name(const std::string& layer) const {
  return names_.prefix + layer + names_.weight;
}
std::string Layers::bias_name(const std::string& layer) const {
  return names_.prefix + layer + names_.bias;
}

std::string Layers::type_text(const Attr::Integers& shape, const std::string& layout) const {
  std::string text = element_type_ + "[";
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    text += concat(axis == 0 ? "" : ", ", shape[axis]);
  }
  return text + (layout.empty() ? "]" : "]@" + layout);
}

// FNV-1a hash of "network/weight": distinct seeds for weights, the same on every machine.
std::uint64_t Layers::seed_of(std::string_view name) const {
  std::uint64_t hash = 14695981039346656037u;
  for (const std::string_view part :
       {std::string_view(network_name_), std::string_view("/"), name}) {
    for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  return hash >> 1;  // seeds are also read as signed numbers
}

Var Layers::image(const std::string& name, const std::string& batch, std::int64_t channels,
                  std::int64_t size) {
  const std::string pixels = concat(size, ", ", size);
  return build_.input(
      name, is_channels_last_
                ? concat(element_type_, "[", batch, ", ", pixels, ", ", channels, "]@NHWC")
                : concat(element_type_, "[", batch, ", ", channels, ", ", pixels, "]"));
}

Var Layers::stored_image(const std::string& name, std::int64_t batch, std::int64_t channels,
                         std::int64_t size) {
  if (is_channels_last_) return normal(name, {batch, size, size, channels}, 1, "NHWC");
  return normal(name, {batch, channels, size, size}, 1);
}

Var Layers::normal(const std::string& name, const Attr::Integers& shape, double deviation,
                   const std::string& layout) {
  return build_.normal(name, type_text(shape, layout), seed_of(name), deviation);
}

Var Layers::uniform(const std::string& name, const Attr::Integers& shape, double low, double high) {
  return build_.constant(concat(type_text(shape, ""), " uniform(seed = ", seed_of(name),
                                ", low = ", format_real(low), ", high = ", format_real(high), ")"),
                         name);
}

Var Layers::bias(const std::string& name, std::int64_t channels) {
  return normal(bias_name(name), {channels}, kBiasDeviation);
}

Var Layers::convolution(Var x, const std::string& name, const ConvolutionSettings& options) {
  const std::int64_t inputs = channels(x) / options.groups, kernel = options.kernel;
  const double fan_in = static_cast<double>(inputs * kernel * kernel);
  const double deviation = std::sqrt(options.gain / fan_in);
  const std::string weight = weight_name(name);
  std::vector<Var> operands{
      x, is_channels_last_
             ? normal(weight, {kernel, kernel, inputs, options.channels}, deviation, "HWIO")
             : normal(weight, {options.channels, inputs, kernel, kernel}, deviation)};
  if (options.has_bias) operands.push_back(bias(name, options.channels));
  std::vector<Attr> attrs;
  if (options.groups != 1) attrs.emplace_back("groups", options.groups);
  if (options.stride != 1) attrs.emplace_back("strides", Attr::Integers(2, options.stride));
  const Attr::Integers pads = options.pads.empty() ? all_sides(options.pad) : options.pads;
  if (!is_zero(pads)) attrs.emplace_back("pads", pads);
  return build_.call("conv", operands, attrs, options.result.empty() ? name : options.result);
}

Var Layers::up_convolution(Var x, const std::string& name, std::int64_t channels_out,
                           std::int64_t stride) {
  TENON_ASSERT(!is_channels_last_, "networks with up-convolutions have no layout to choose");
  // Windows do not overlap, so that an element sums over the input channels only.
  const double deviation = std::sqrt(2.0 / static_cast<double>(channels(x)));
  const Var weight =
      normal(weight_name(name), {channels(x), channels_out, stride, stride}, deviation);
  return build_.call("conv_transpose", {x, weight, bias(name, channels_out)},
                     {{"strides", Attr::Integers(2, stride)}}, name);
}

Var Layers::add_bias(Var x, const std::string& name, Var bias) {
  if (!is_channels_last_) {
    bias = build_.call("reshape", {bias}, {{"shape", Attr::Integers{-1, 1, 1}}});
  }
  return build_.call("add", {x, bias}, {}, name);
}

Var Layers::batch_norm(Var x, const std::string& name, double scale) {
  const Attr::Integers shape{channels(x)};
  std::vector<Attr> attrs;
  if (is_channels_last_) attrs.emplace_back("axis", 3);
  return build_.call(
      "batch_norm",
      {x, uniform(weight_name(name), shape, 0.8 * scale, 1.2 * scale),
       normal(bias_name(name), shape, 0.1), normal(name + ".running_mean", shape, 0.1),
       uniform(name + ".running_var", shape, 0.8, 1.2)},
      attrs, name);
}

Var Layers::relu6(Var x, const std::string& name) {
  if (!zero_) {
    zero_ = build_.constant(element_type_ + "[] 0", "zero");
    six_ = build_.constant(element_type_ + "[] 6", "six");
  }
  return build_.call("clip", {x, *zero_, *six_}, {}, name);
}

std::vector<Attr> Layers::pool_attributes(const PoolSettings& pool) const {
  std::vector<Attr> attrs{{"kernel_shape", Attr::Integers(2, pool.kernel)}};
  if (pool.stride != 1) attrs.emplace_back("strides", Attr::Integers(2, pool.stride));
  const Attr::Integers pads = pool.pads.empty() ? all_sides(pool.pad) : pool.pads;
  if (!is_zero(pads)) attrs.emplace_back("pads", pads);
  if (pool.ceil_mode) attrs.emplace_back("ceil_mode", true);
  return attrs;
}

Var Layers::max_pool(Var x, const std::string& name, const PoolSettings& pool) {
  return build_.call("max_pool", {x}, pool_attributes(pool), name);
}

Var Layers::average_pool(Var x, const std::string& name, const PoolSettings& pool) {
  return build_.call("average_pool", {x}, pool_attributes(pool), name);
}

Var Layers::mean_over_pixels(Var x, const std::string& name) {
  return build_.call("reduce_mean", {x}, {{"axes", pixel_axes()}, {"keep_axes", false}}, name);
}

Var Layers::flatten(Var x, const std::string& name) {
  const std::vector<std::int64_t> extents = build_.shape(x);
  const std::int64_t size =
      std::accumulate(extents.begin() + 1, extents.end(), std::int64_t{1}, std::multiplies<>());
  return build_.call("reshape", {x}, {{"shape", Attr::Integers{0, size}}}, name);
}

Var Layers::concat_channels(const std::vector<Var>& xs, const std::string& name) {
  return build_.call("concat", xs, {{"axis", channel_axis()}}, name);
}

Var Layers::linear(Var x, const std::string& name, std::int64_t size, double gain) {
  const std::int64_t inputs = build_.shape(x).back();
  const Var weight =
      normal(weight_name(name), {inputs, size}, std::sqrt(gain / static_cast<double>(inputs)));
  const Var bias = normal(bias_name(name), {size}, kBiasDeviation);
  return build_.call("add", {build_.call("matmul", {x, weight}, {}, name + ".matmul"), bias}, {},
                     name);
}

Var Layers::layer_norm(Var x, const std::string& name, double epsilon) {
  const Attr::Integers shape{build_.shape(x).back()};
  const Var scale = uniform(weight_name(name), shape, 0.8, 1.2);
  const Var bias = normal(bias_name(name), shape, kBiasDeviation);
  return build_.call("layer_norm", {x, scale, bias}, {{"epsilon", epsilon}}, name);
}

std::int64_t Layers::channels(Var x) const {
  return build_.shape(x)[static_cast<std::size_t>(channel_axis())];
}

std::int64_t Layers::rows(Var x) const {
  return build_.shape(x)[static_cast<std::size_t>(pixel_axes().front())];
}

Attr::Integers Layers::pixel_axes() const {
  return is_channels_last_ ? Attr::Integers{1, 2} : Attr::Integers{2, 3};
}

}  // namespace tenon::zoo
