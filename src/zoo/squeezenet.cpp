#include "base/error.h"
#include "zoo/layers.h"

namespace tenon::zoo {
namespace {

Var conv_relu(Layers& net, Var x, const std::string& name, ConvolutionSettings options) {
  options.has_bias = true;
  return net.relu(net.convolution(x, name, options), name + ".relu");
}

// Fire module: a 1x1 squeeze convolution feeds parallel 1x1 and 3x3 expand convolutions.
Var fire(Layers& net, Var x, int which, std::int64_t squeezed, std::int64_t expanded) {
  const std::string name = concat("fire", which);
  x = conv_relu(net, x, name + ".squeeze", {.channels = squeezed});
  const Var narrow = conv_relu(net, x, name + ".expand1x1", {.channels = expanded});
  const Var wide =
      conv_relu(net, x, name + ".expand3x3", {.channels = expanded, .kernel = 3, .pad = 1});
  return net.concat_channels({narrow, wide}, name + ".concat");
}

// Version 1.1, which pools earlier than 1.0.
Graph make_squeezenet(const NetworkSettings& settings) {
  Layers net(settings);
  const PoolSettings pool{.kernel = 3, .stride = 2, .ceil_mode = true};
  Var x = net.image("x", settings.extent("batch"), 3, settings.number("size", 17, 1 << 14));
  x = conv_relu(net, x, "conv1", {.channels = 64, .kernel = 3, .stride = 2});
  x = net.max_pool(x, "pool1", pool);
  x = fire(net, fire(net, x, 2, 16, 64), 3, 16, 64);
  x = net.max_pool(x, "pool3", pool);
  x = fire(net, fire(net, x, 4, 32, 128), 5, 32, 128);
  x = net.max_pool(x, "pool5", pool);
  x = fire(net, fire(net, x, 6, 48, 192), 7, 48, 192);
  x = fire(net, fire(net, x, 8, 64, 256), 9, 64, 256);
  x = conv_relu(net, x, "conv10", {.channels = settings.number("classes", 1, 1 << 20), .gain = 1});
  net.builder().output(net.mean_over_pixels(x, "avgpool"), "logits");
  return net.take();
}

}  // namespace

std::vector<Recipe> squeezenet_recipes() {
  return {{{"squeezenet", "classifier of few weights, version 1.1",
            with_common({size_parameter("224"), classes_parameter("1000")})},
           make_squeezenet}};
}

}  // namespace tenon::zoo
