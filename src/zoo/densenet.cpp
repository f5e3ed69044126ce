#include "base/error.h"
#include "zoo/layers.h"

namespace tenon::zoo {
namespace {

constexpr std::int64_t kGrowth = 32;
constexpr int kDepths[] = {6, 12, 24, 16};

// Pre-activation: normalization precedes the convolution, since each layer reads the concatenation
// of earlier ones.
Var norm_relu_conv(Layers& net, Var x, const std::string& prefix, const std::string& which,
                   const ConvolutionSettings& options) {
  x = net.relu(net.batch_norm(x, prefix + "norm" + which), prefix + "relu" + which);
  return net.convolution(x, prefix + "conv" + which, options);
}

Var dense_layer(Layers& net, Var x, const std::string& prefix) {
  Var y = norm_relu_conv(net, x, prefix, "1", {.channels = 4 * kGrowth});
  y = norm_relu_conv(net, y, prefix, "2", {.channels = kGrowth, .kernel = 3, .pad = 1});
  return net.concat_channels({x, y}, prefix + "concat");
}

Graph make_densenet121(const NetworkSettings& settings) {
  Layers net(settings);
  Var x = net.image("x", settings.extent("batch"), 3, settings.number("size", 29, 1 << 14));
  x = net.convolution(x, "conv0", {.channels = 64, .kernel = 7, .stride = 2, .pad = 3});
  x = net.relu(net.batch_norm(x, "norm0"), "relu0");
  x = net.max_pool(x, "pool0", {.kernel = 3, .stride = 2, .pad = 1});
  for (int block = 1; block <= 4; ++block) {
    for (int layer = 1; layer <= kDepths[block - 1]; ++layer) {
      x = dense_layer(net, x, concat("denseblock", block, ".denselayer", layer, "."));
    }
    if (block == 4) break;
    const std::string prefix = concat("transition", block, ".");
    x = norm_relu_conv(net, x, prefix, "", {.channels = net.channels(x) / 2});
    x = net.average_pool(x, prefix + "pool", {.kernel = 2, .stride = 2});
  }
  x = net.relu(net.batch_norm(x, "norm5"), "relu5");
  x = net.mean_over_pixels(x, "avgpool");
  net.builder().output(net.linear(x, "classifier", settings.number("classes", 1, 1 << 20)),
                       "logits");
  return net.take();
}

}  // namespace

std::vector<Recipe> densenet_recipes() {
  return {{{"densenet121", "classifier whose layers read all those before them",
            with_common({size_parameter("224"), classes_parameter("1000")})},
           make_densenet121}};
}

}  // namespace tenon::zoo
