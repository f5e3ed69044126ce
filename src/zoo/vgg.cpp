#include "base/error.h"
#include "zoo/layers.h"

namespace tenon::zoo {
namespace {

constexpr std::int64_t kVggHidden = 4096;

struct VggStage {
  std::int64_t channels;
  int depth;
};
constexpr VggStage kVggStages[] = {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}};

Graph make_vgg16(const NetworkSettings& settings) {
  Layers net(settings);
  Var x = net.image("x", settings.extent("batch"), 3, settings.number("size", 32, 1 << 14));
  for (int stage = 1; stage <= 5; ++stage) {
    const auto [channels, depth] = kVggStages[stage - 1];
    for (int layer = 1; layer <= depth; ++layer) {
      const std::string suffix = concat(stage, "_", layer);
      x = net.convolution(x, "conv" + suffix,
                          {.channels = channels, .kernel = 3, .pad = 1, .has_bias = true});
      x = net.relu(x, "relu" + suffix);
    }
    x = net.max_pool(x, concat("pool", stage), {.kernel = 2, .stride = 2});
  }
  x = net.flatten(x, "flatten");
  x = net.relu(net.linear(x, "fc6", kVggHidden, 2), "relu6");
  x = net.relu(net.linear(x, "fc7", kVggHidden, 2), "relu7");
  net.builder().output(net.linear(x, "fc8", settings.number("classes", 1, 1 << 20)), "logits");
  return net.take();
}

}  // namespace

std::vector<Recipe> vgg_recipes() {
  return {{{"vgg16", "classifier of 13 convolutions and 3 dense layers",
            with_common({size_parameter("224"), classes_parameter("1000")})},
           make_vgg16}};
}

}  // namespace tenon::zoo
