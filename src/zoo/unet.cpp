#include "base/error.h"
#include "zoo/layers.h"

namespace tenon::zoo {
namespace {

constexpr int kLevels = 4;  // pooling levels; the bottleneck is below them

/// Differences between the U-Nets. Values are named by level and step: d0a, d0b, d0c on the
/// contracting path, u3a (upsampled), u3b (concatenated), u3c, u3d on the expanding path; a layer
/// by the two values it connects.
struct Shape {
  std::int64_t width = 64;  // channels of the first level; doubled at each further level
  bool is_padded = false;
  bool has_norm = false;
  bool has_dropout = false;
  bool pools_ceil = false;
  bool has_relu_after_up = false;
  std::int64_t last_up_channels = 64;
};

class UNet {
 public:
  UNet(Layers& layers, const Shape& unet_shape) : net(layers), shape(unet_shape) {}

  Var run(Var x, std::int64_t classes) {
    std::vector<Var> skips;
    for (int level = 0; level <= kLevels; ++level) {
      const std::string place = concat("d", level);
      x = two_convolutions(x, place + "a", place + "b", place + "c", shape.width << level);
      if (level >= kLevels - 1 && shape.has_dropout) {
        // Drops in training only.
        Builder& build = net.builder();
        x = build.call_all("dropout", {x, build.scalar(0.5, x), build.constant("bool[] false")},
                           std::vector<Attr>{}, {place + "c_dropped", ""})[0];
      }
      if (level == kLevels) break;
      skips.push_back(x);
      x = net.max_pool(x, concat("d", level + 1, "a"),
                       {.kernel = 2, .stride = 2, .ceil_mode = shape.pools_ceil});
    }
    std::string from = concat("d", kLevels, "c");
    for (int level = kLevels - 1; level >= 0; --level) {
      const std::string place = concat("u", level);
      x = net.concat_channels(
          {cropped(skips[static_cast<std::size_t>(level)], x, level), raised(x, from, level)},
          place + "b");
      x = two_convolutions(x, place + "b", place + "c", place + "d", shape.width << level);
      from = place + "d";
    }
    return net.convolution(x, "conv_u0d_score", {.channels = classes, .has_bias = true, .gain = 1});
  }

 private:
  Var convolution(Var x, const std::string& from, const std::string& to, std::int64_t channels) {
    const std::string step = to.substr(to.size() - 1);
    const ConvolutionSettings options{
        .channels = channels, .kernel = 3, .pad = shape.is_padded, .has_bias = !shape.has_norm};
    x = net.convolution(x, concat("conv_", from, "_", step), options);
    if (shape.has_norm) x = net.batch_norm(x, concat("bn_", from, "_", step));
    return net.relu(x, to);
  }

  Var two_convolutions(Var x, const std::string& a, const std::string& b, const std::string& c,
                       std::int64_t channels) {
    return convolution(convolution(x, a, b, channels), b, c, channels);
  }

  // Doubles the extents.
  Var raised(Var x, const std::string& from, int level) {
    const std::string name = concat("u", level, "a");
    const std::int64_t channels = level == 0 ? shape.last_up_channels : shape.width << level;
    x = net.up_convolution(x, concat("upconv_", from, "_", name), channels, 2);
    return shape.has_relu_after_up ? net.relu(x, name) : x;
  }

  // Crops the centre of a skip connection to the upsampled size of `x`.
  Var cropped(Var skip, Var x, int level) {
    const std::int64_t rows = net.rows(skip), cut = (rows - 2 * net.rows(x)) / 2;
    if (cut == 0) return skip;
    return net.builder().call("slice", {skip},
                              {{"starts", Attr::Integers(2, cut)},
                               {"ends", Attr::Integers(2, -cut)},
                               {"axes", net.pixel_axes()}},
                              concat("d", level, "c_cropped"));
  }

  Layers& net;
  const Shape& shape;
};

void output_loss(Layers& net, Var score, const std::string& batch) {
  Builder& build = net.builder();
  const std::int64_t rows = net.rows(score);
  const Var labels = build.input("labels", concat("i32[", batch, ", ", rows, ", ", rows, "]"));
  const Var likelihoods = build.call("log_softmax", {score}, {{"axis", 1}}, "log_likelihoods");
  build.output(build.call("nll_loss", {likelihoods, labels}, {{"ignore_index", -1}}, "loss"));
}

Graph make_unet572(const NetworkSettings& settings) {
  const bool is_chainer = settings.word("form", {"chainer", "paper"}) == "chainer";
  const std::string batch = settings.extent("batch");
  const std::int64_t size = settings.number("size", 1, 1 << 14);
  // Every level must pool an even extent, and the last one must be nonempty.
  if (size % 16 != 12 || size < 188) settings.refuse("size", "16*k + 12, from 188 on");
  Layers net(settings, "NCHW", {"/W", "/b", "/"});
  const Shape shape{.has_dropout = settings.flag("dropout"),
                    .pools_ceil = is_chainer,
                    .has_relu_after_up = is_chainer,
                    .last_up_channels = is_chainer ? 128 : 64};
  const Var image = net.image("x", batch, 1, size);
  const Var score = UNet(net, shape).run(image, settings.number("classes", 1, 1 << 16));
  if (settings.flag("loss")) {
    output_loss(net, score, batch);
  } else {
    net.builder().output(score, "y");
  }
  return net.take();
}

Graph make_unet256(const NetworkSettings& settings) {
  const std::int64_t size = settings.number("size", 1, 1 << 14);
  if (size % 16 != 0) settings.refuse("size", "a multiple of 16");
  const std::int64_t width = settings.number("width", 1, 1 << 12);
  Layers net(settings);
  const Shape shape{.width = width, .is_padded = true, .has_norm = true, .last_up_channels = width};
  const Var image = net.image("x", settings.extent("batch"), 3, size);
  net.builder().output(UNet(net, shape).run(image, settings.number("classes", 1, 1 << 16)), "y");
  return net.take();
}

}  // namespace

std::vector<Recipe> unet_recipes() {
  return {
      {{"unet572", "the first U-Net for segmentation: convolutions without padding, cropped skips",
        with_common(
            {size_parameter("572"),
             classes_parameter("2"),
             {"form", "chainer",
              "chainer: relus after up-convolutions, 128 channels in the last; paper: neither"},
             {"dropout", "0", "dropout at the two lowest levels: 0 or 1"},
             {"loss", "0",
              "the mean cross entropy with a second input, in place of scores: "
              "0 or 1"}})},
       make_unet572},
      {{"unet256", "U-Net with padded convolutions and batch norms",
        with_common({size_parameter("256"),
                     classes_parameter("2"),
                     {"width", "32", "channels of the first level"}})},
       make_unet256},
  };
}

}  // namespace tenon::zoo
