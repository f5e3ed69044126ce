#include "base/error.h"
#include "zoo/layers.h"

namespace tenon::zoo {
namespace {

struct MobileNetStage {
  std::int64_t expansion, channels;
  int depth;
  std::int64_t stride;
};
constexpr MobileNetStage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                      {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
constexpr double kBranchScale = 0.5;

Var conv_norm_relu6(Layers& net, Var x, const std::string& name,
                    const ConvolutionSettings& options) {
  x = net.batch_norm(net.convolution(x, name + ".conv", options), name + ".bn");
  return net.relu6(x, name + ".relu6");
}

// Inverted residual block: wide inside and narrow outside; the narrow ends lack a ReLU.
Var inverted_residual(Layers& net, Var x, const std::string& name, const MobileNetStage& stage,
                      std::int64_t stride) {
  const std::int64_t inputs = net.channels(x), wide = inputs * stage.expansion;
  Var y = x;
  if (stage.expansion > 1) y = conv_norm_relu6(net, y, name + ".expand", {.channels = wide});
  y = conv_norm_relu6(net, y, name + ".depthwise",
                      {.channels = wide, .kernel = 3, .stride = stride, .pad = 1, .groups = wide});
  const bool has_skip = stride == 1 && inputs == stage.channels;
  y = net.convolution(y, name + ".project.conv", {.channels = stage.channels, .gain = 1.5});
  y = net.batch_norm(y, name + ".project.bn", has_skip ? kBranchScale : 1);
  return has_skip ? net.builder().call("add", {x, y}, {}, name + ".add") : y;
}

Graph make_mobilenet_v2(const NetworkSettings& settings) {
  Layers net(settings);
  Var x = net.image("x", settings.extent("batch"), 3, settings.number("size", 1, 1 << 14));
  x = conv_norm_relu6(net, x, "features.0", {.channels = 32, .kernel = 3, .stride = 2, .pad = 1});
  int unit = 1;
  for (const MobileNetStage& stage : kStages) {
    for (int k = 0; k < stage.depth; ++k, ++unit) {
      x = inverted_residual(net, x, concat("features.", unit), stage, k == 0 ? stage.stride : 1);
    }
  }
  x = conv_norm_relu6(net, x, concat("features.", unit), {.channels = 1280});
  x = net.mean_over_pixels(x, "avgpool");
  net.builder().output(net.linear(x, "classifier", settings.number("classes", 1, 1 << 20)),
                       "logits");
  return net.take();
}

}  // namespace

std::vector<Recipe> mobilenet_recipes() {
  return {{{"mobilenet_v2", "small classifier of depthwise convolutions",
            with_common({size_parameter("224"), classes_parameter("1000")})},
           make_mobilenet_v2}};
}

}  // namespace tenon::zoo
