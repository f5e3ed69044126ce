#include "base/error.h"
#include "zoo/layers.h"

namespace tenon::zoo {
namespace {

constexpr std::int64_t kWidths[] = {64, 128, 256, 512};
constexpr std::int64_t kExpansion = 4;  // ratio of a bottleneck's output channels to its inner ones
// Residual branches end in small scales, so that their sums stay of order one.
constexpr double kBottleneckScale = 0.3;

// ---- v1.5: strides in the first unit of a stage, with batch norms ----

Var conv_norm(Layers& net, Var x, const std::string& prefix, const std::string& which,
              const ConvolutionSettings& options, double scale = 1) {
  return net.batch_norm(net.convolution(x, prefix + "conv" + which, options), prefix + "bn" + which,
                        scale);
}

Var shortcut(Layers& net, Var x, const std::string& prefix, std::int64_t channels,
             std::int64_t stride) {
  if (net.channels(x) == channels && stride == 1) return x;
  const Var projected = net.convolution(x, prefix + "downsample.0",
                                        {.channels = channels, .stride = stride, .gain = 1});
  return net.batch_norm(projected, prefix + "downsample.1");
}

Var basic_unit(Layers& net, Var x, const std::string& prefix, std::int64_t width,
               std::int64_t stride) {
  Var y =
      conv_norm(net, x, prefix, "1", {.channels = width, .kernel = 3, .stride = stride, .pad = 1});
  y = net.relu(y, prefix + "relu1");
  y = conv_norm(net, y, prefix, "2", {.channels = width, .kernel = 3, .pad = 1}, kBottleneckScale);
  const Var skip = shortcut(net, x, prefix, width, stride);
  return net.relu(net.builder().call("add", {y, skip}, {}, prefix + "add"), prefix + "relu2");
}

Var bottleneck_unit(Layers& net, Var x, const std::string& prefix, std::int64_t width,
                    std::int64_t stride) {
  Var y = net.relu(conv_norm(net, x, prefix, "1", {.channels = width}), prefix + "relu1");
  y = conv_norm(net, y, prefix, "2", {.channels = width, .kernel = 3, .stride = stride, .pad = 1});
  y = net.relu(y, prefix + "relu2");
  y = conv_norm(net, y, prefix, "3", {.channels = kExpansion * width}, kBottleneckScale);
  const Var skip = shortcut(net, x, prefix, kExpansion * width, stride);
  return net.relu(net.builder().call("add", {y, skip}, {}, prefix + "add"), prefix + "relu3");
}

using Unit = Var (*)(Layers&, Var, const std::string&, std::int64_t, std::int64_t);

Graph make_resnet(const NetworkSettings& settings, Unit unit, const std::vector<int>& depths) {
  Layers net(settings, settings.word("layout", {"NCHW", "NHWC"}));
  Var x = net.image("x", settings.extent("batch"), 3, settings.number("size", 1, 1 << 14));
  x = conv_norm(net, x, "", "1", {.channels = 64, .kernel = 7, .stride = 2, .pad = 3});
  x = net.max_pool(net.relu(x, "relu"), "maxpool", {.kernel = 3, .stride = 2, .pad = 1});
  for (std::size_t stage = 0; stage < depths.size(); ++stage) {
    for (int k = 0; k < depths[stage]; ++k) {
      const std::int64_t stride = stage > 0 && k == 0 ? 2 : 1;
      x = unit(net, x, concat("layer", stage + 1, ".", k, "."), kWidths[stage], stride);
    }
  }
  x = net.mean_over_pixels(x, "avgpool");
  net.builder().output(net.linear(x, "fc", settings.number("classes", 1, 1 << 20)), "logits");
  return net.take();
}

Graph make_resnet18(const NetworkSettings& settings) {
  return make_resnet(settings, basic_unit, {2, 2, 2, 2});
}

// ---- v1: as in TensorFlow's slim library, with batch norms folded into biases ----

constexpr const char* kScope = "resnet_v1_50/";

Var slim_conv(Layers& net, Var x, const std::string& name, ConvolutionSettings options) {
  options.result = name + "/Conv2D";
  return net.convolution(x, name, options);
}

Var conv_bias(Layers& net, Var x, const std::string& name, const ConvolutionSettings& options) {
  const Var y = slim_conv(net, x, name, options);
  return net.add_bias(y, name + "/BiasAdd", net.bias(name, options.channels));
}

Var conv_bias_relu(Layers& net, Var x, const std::string& name,
                   const ConvolutionSettings& options) {
  return net.relu(conv_bias(net, x, name, options), name + "/Relu");
}

// The 3x3 convolution of a block's last unit has the stride; the shortcut subsamples the image by a
// 1x1 pooling.
Var slim_unit(Layers& net, Var x, const std::string& name, std::int64_t width,
              std::int64_t stride) {
  const std::int64_t channels = kExpansion * width;
  Var skip = x, skip_bias;
  const bool is_projected = net.channels(x) != channels;
  if (is_projected) {
    skip = slim_conv(net, x, name + "/shortcut", {.channels = channels, .gain = 1});
    skip_bias = net.bias(name + "/shortcut", channels);
  }
  Var y = conv_bias_relu(net, x, name + "/conv1", {.channels = width});
  y = conv_bias_relu(net, y, name + "/conv2",
                     {.channels = width, .kernel = 3, .stride = stride, .pad = 1});
  y = slim_conv(net, y, name + "/conv3",
                {.channels = channels, .gain = 2 * kBottleneckScale * kBottleneckScale});
  if (is_projected) skip = net.add_bias(skip, name + "/shortcut/BiasAdd", skip_bias);
  if (stride > 1) {
    skip = net.max_pool(skip, name + "/shortcut/MaxPool", {.kernel = 1, .stride = stride});
  }
  y = net.add_bias(y, name + "/conv3/BiasAdd", net.bias(name + "/conv3", channels));
  return net.relu(net.builder().call("add", {skip, y}, {}, name + "/add"), name + "/Relu");
}

Graph make_resnet50_v1(const NetworkSettings& settings, const std::string& layout) {
  Layers net(settings, layout, {"/weights", "/biases"});
  Builder& build = net.builder();
  const std::string scope = kScope;
  Var x = net.image("data", settings.extent("batch"), 3, settings.number("size", 1, 1 << 14));
  // A fourth channel of zeros, for int8 convolutions that read four channels at a time.
  x = build.call("pad", {x},
                 {{"pads", Attr::Integers{0, 1}}, {"axes", Attr::Integers{net.channel_axis()}}},
                 scope + "Pad");
  x = conv_bias_relu(net, x, scope + "conv1", {.channels = 64, .kernel = 7, .stride = 2, .pad = 3});
  x = net.max_pool(x, scope + "pool1/MaxPool",
                   {.kernel = 3, .stride = 2, .pads = same_pads(net.rows(x), 3, 2)});
  constexpr int kDepths[] = {3, 4, 6, 3};
  for (int block = 0; block < 4; ++block) {
    for (int unit = 0; unit < kDepths[block]; ++unit) {
      const std::int64_t stride = unit + 1 == kDepths[block] && block < 3 ? 2 : 1;
      const std::string name =
          concat(scope, "block", block + 1, "/unit_", unit + 1, "/bottleneck_v1");
      x = slim_unit(net, x, name, kWidths[block], stride);
    }
  }
  x = build.call("reduce_mean", {x}, {{"axes", net.pixel_axes()}}, scope + "pool5");
  const std::int64_t classes = settings.number("classes", 1, 1 << 20);
  build.output(conv_bias(net, x, scope + "logits", {.channels = classes, .gain = 1}));
  return net.take();
}

Graph make_resnet50(const NetworkSettings& settings) {
  const std::string& form = settings.word("form", {"v1.5", "v1"});
  if (form == "v1") return make_resnet50_v1(settings, settings.word("layout", {"NCHW", "NHWC"}));
  return make_resnet(settings, bottleneck_unit, {3, 4, 6, 3});
}

}  // namespace

std::vector<Recipe> resnet_recipes() {
  const Parameter layout{"layout", "NCHW", "layout of images: NCHW or NHWC"};
  const Parameter form{"form", "v1.5",
                       "v1.5: with batch norms; v1: TensorFlow slim's, with folded batch norms"};
  return {
      {{"resnet18", "residual classifier of 18 layers",
        with_common({size_parameter("224"), classes_parameter("1000"), layout})},
       make_resnet18},
      {{"resnet50", "residual classifier of 50 layers",
        with_common({size_parameter("224"), classes_parameter("1000"), layout, form})},
       make_resnet50},
  };
}

}  // namespace tenon::zoo
