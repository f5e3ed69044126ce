#include "base/error.h"
#include "zoo/layers.h"

namespace tenon::zoo {
namespace {

Graph make_mlp(const NetworkSettings& settings) {
  Layers net(settings);
  const std::int64_t hidden = settings.number("hidden", 1, 1 << 20);
  const std::int64_t size = settings.number("size", 1, 1 << 20);
  const std::string type =
      concat(net.element_type(), "[", settings.extent("batch"), ", ", size, "]");
  Var x = net.builder().input("x", type);
  x = net.relu(net.linear(x, "fc1", hidden, 2), "relu1");
  x = net.relu(net.linear(x, "fc2", hidden, 2), "relu2");
  net.builder().output(net.linear(x, "fc3", settings.number("classes", 1, 1 << 20)), "logits");
  return net.take();
}

}  // namespace

std::vector<Recipe> mlp_recipes() {
  return {{{"mlp", "classifier of three dense layers",
            with_common({{"size", "784", "extent of an input"},
                         {"hidden", "512", "extent of the layers between"},
                         classes_parameter("10")})},
           make_mlp}};
}

}  // namespace tenon::zoo
