#include "base/error.h"
#include "layers.h"

namespace tenon::testing {
namespace {

using Integers = Attr::Integers;

std::size_t pixel_rank(Chain& chain, Var x) { return chain.shape(x).size() - 2; }

// One value per pixel axis: mostly the same.
Integers per_axis(Chain& chain, std::size_t rank, std::int64_t least, std::int64_t most,
                  unsigned least_share = 0) {
  testing::Random& random = chain.random();
  Integers values(rank, random.chance(least_share) ? least : random.between(least, most));
  if (random.chance(20)) values[0] = random.between(least, most);
  return values;
}

// Strides, dilations and padding of a window.
std::vector<Attr> window(Chain& chain, const Integers& kernel, bool has_dilations) {
  testing::Random& random = chain.random();
  const std::size_t rank = kernel.size();
  std::vector<Attr> attrs{{"strides", per_axis(chain, rank, 1, 3, 70)}};
  Integers dilations(rank, 1);
  if (has_dilations) {
    dilations = per_axis(chain, rank, 1, 3, 80);
    attrs.emplace_back("dilations", dilations);
  }
  if (random.chance(15)) {
    attrs.emplace_back("auto_pad", random.chance(50) ? "same_upper" : "same_lower");
    return attrs;
  }
  Integers pads;
  for (int end = 0; end < 2; ++end) {
    for (std::size_t axis = 0; axis < rank; ++axis)
      pads.push_back(dilations[axis] * (kernel[axis] / 2));
  }
  if (random.chance(30)) pads.assign(2 * rank, 0);
  if (random.chance(20)) {
    for (std::int64_t& pad : pads) pad = random.between(0, kernel[0] - 1);
  }
  attrs.emplace_back("pads", pads);
  return attrs;
}

Var convolution(Chain& chain, Var x) {
  testing::Random& random = chain.random();
  const std::int64_t channels = chain.shape(x)[1];
  const Integers kernel = random.chance(40) ? Integers(pixel_rank(chain, x), 3)
                                            : per_axis(chain, pixel_rank(chain, x), 1, 7, 30);
  std::int64_t groups = 1;
  if (random.chance(25)) groups = channels;
  if (random.chance(15)) {
    groups = random.between(1, channels);
    while (channels % groups != 0) --groups;
  }
  const std::int64_t per_group =
      groups == channels && random.chance(80) ? 1 : (chain.channels() + groups - 1) / groups;
  Integers weights{groups * per_group, channels / groups};
  weights.insert(weights.end(), kernel.begin(), kernel.end());
  std::vector<Attr> attrs = window(chain, kernel, true);
  attrs.emplace_back("groups", groups);
  std::vector<Var> operands{x, chain.weight(weights)};
  if (random.chance(50)) operands.push_back(chain.weight({weights[0]}));
  return chain.call("conv", operands, attrs);
}

Var transposed_convolution(Chain& chain, Var x) {
  testing::Random& random = chain.random();
  const std::int64_t channels = chain.shape(x)[1];
  const Integers kernel = per_axis(chain, pixel_rank(chain, x), 1, 5);
  const std::int64_t groups = random.chance(20) ? channels : 1;
  Integers weights{channels, groups == 1 ? chain.channels() : 1};
  weights.insert(weights.end(), kernel.begin(), kernel.end());
  std::vector<Attr> attrs = window(chain, kernel, true);
  attrs.emplace_back("groups", groups);
  return chain.call("conv_transpose", {x, chain.weight(weights)}, attrs);
}

Var pooling(Chain& chain, Var x) {
  testing::Random& random = chain.random();
  const Integers kernel = per_axis(chain, pixel_rank(chain, x), 1, 5);
  std::vector<Attr> attrs = window(chain, kernel, random.chance(20));
  attrs.emplace_back("kernel_shape", kernel);
  attrs.emplace_back("ceil_mode", random.chance(30));
  if (random.chance(50)) return chain.call("max_pool", {x}, attrs);
  attrs.emplace_back("count_include_pad", random.chance(50));
  return chain.call("average_pool", {x}, attrs);
}

Var image_norm(Chain& chain, Var x) {
  testing::Random& random = chain.random();
  const std::int64_t channels = chain.shape(x)[1];
  const Var scale = chain.weight({channels}), bias = chain.weight({channels});
  if (random.chance(50)) {
    const Var variance =
        chain.builder().constant(concat(chain.element_type(), "[", channels, "] splat 0.5"));
    return chain.call("batch_norm", {x, scale, bias, chain.weight({channels}), variance});
  }
  if (random.chance(40)) return chain.call("instance_norm", {x, scale, bias});
  if (random.chance(30))
    return chain.call("lrn", {x}, {{"size", random.between(1, 5)}, {"alpha", 0.1}});
  std::int64_t groups = random.between(1, channels);
  while (channels % groups != 0) --groups;
  return chain.call("group_norm", {x, scale, bias}, {{"groups", groups}});
}

Var resize(Chain& chain, Var x) {
  testing::Random& random = chain.random();
  const std::vector<std::string> modes = {"nearest", "linear", "cubic"},
                                 coordinates = {"half_pixel", "align_corners", "asymmetric",
                                                "pytorch_half_pixel"};
  std::vector<double> scales{1, 1};
  const double scale = random.chance(60) ? 2 : 0.25 + 3 * random.real();
  scales.resize(chain.shape(x).size(), scale);
  return chain.call("resize", {x},
                    {{"scales", scales},
                     {"mode", random.pick(modes)},
                     {"coordinates", random.pick(coordinates)}});
}

// Bias, a value per sample and channel (squeeze-and-excitation), a residual.
Var image_epilogue(Chain& chain, Var x) {
  testing::Random& random = chain.random();
  const Integers shape = chain.shape(x);
  if (random.chance(40)) return x + chain.earlier_like(x);
  Integers bias(shape.size() - 1, 1);
  bias[0] = shape[1];
  if (random.chance(50)) return x + chain.weight(bias);
  Integers axes;
  for (std::size_t axis = 2; axis < shape.size(); ++axis)
    axes.push_back(static_cast<std::int64_t>(axis));
  const Var mean = chain.call("reduce_mean", {x}, {{"axes", axes}, {"keep_axes", true}});
  return x * chain.call("sigmoid", {mean});
}

Var image_movement(Chain& chain, Var x) {
  testing::Random& random = chain.random();
  const Integers shape = chain.shape(x);
  switch (random.below(6)) {
    case 0:
      return chain.call("concat", {x, chain.earlier_like(x)}, {{"axis", 1}});
    case 1: {
      const std::int64_t first = random.between(1, shape[1]);
      const std::vector<Var> parts = chain.builder().call_all(
          "split", {x}, {{"axis", 1}, {"sizes", Integers{first, shape[1] - first}}}, {"", ""});
      return random.chance(50) ? chain.call("concat", {parts[1], parts[0]}, {{"axis", 1}})
                               : parts[0];
    }
    case 2: {
      Integers pads(2 * shape.size(), 0);
      for (std::size_t axis = 2; axis < shape.size(); ++axis)
        pads[axis] = pads[axis + shape.size()] = random.between(0, 2);
      const std::vector<std::string> modes = {"constant", "edge", "reflect"};
      return chain.call("pad", {x}, {{"pads", pads}, {"mode", random.pick(modes)}});
    }
    case 3:
      return chain.call(random.chance(50) ? "depth_to_space" : "space_to_depth", {x},
                        {{"block", 2}});
    case 4:
      return chain.call("softmax", {x}, {{"axis", 1}});
    default:
      return chain.call(
          "slice", {x},
          {{"starts", Integers{random.between(0, 1)}},
           {"ends", Integers{1000}},
           {"steps", Integers{random.between(1, 2)}},
           {"axes", Integers{random.between(1, static_cast<std::int64_t>(shape.size()) - 1)}}});
  }
}

// A classifier's head; the value is no image afterwards.
Var head(Chain& chain, Var x) {
  const Integers shape = chain.shape(x);
  Integers axes;
  for (std::size_t axis = 2; axis < shape.size(); ++axis)
    axes.push_back(static_cast<std::int64_t>(axis));
  const Var mean = chain.call("reduce_mean", {x}, {{"axes", axes}, {"keep_axes", false}});
  return chain.call("matmul", {mean, chain.weight({shape[1], chain.channels()})});
}

}  // namespace

Var image_layer(Chain& chain, Var x) {
  if (chain.shape(x).size() < 3) return chain.activation(x);
  const std::size_t kind = chain.random().below(100);
  if (kind < 40) return convolution(chain, x);
  if (kind < 47) return transposed_convolution(chain, x);
  if (kind < 57) return pooling(chain, x);
  if (kind < 66) return image_norm(chain, x);
  if (kind < 70) return resize(chain, x);
  if (kind < 80) return chain.activation(x);
  if (kind < 87) return image_epilogue(chain, x);
  if (kind < 97) return image_movement(chain, x);
  return head(chain, x);
}

}  // namespace tenon::testing
