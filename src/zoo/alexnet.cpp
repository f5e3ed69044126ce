#include "base/error.h"
#include "zoo/layers.h"

namespace tenon::zoo {
namespace {

constexpr std::int64_t kHidden = 4096;

// In form tf a bias is a separate node and the padding makes strides divide the image; in form
// torch the padding is fixed.
Var conv_relu(Layers& net, Var x, const std::string& name, ConvolutionSettings options,
              bool is_tensorflow) {
  options.result = name + "/Conv2D";
  options.has_bias = !is_tensorflow;
  if (is_tensorflow) options.pads = same_pads(net.rows(x), options.kernel, options.stride);
  Var y = net.convolution(x, name, options);
  if (is_tensorflow) y = net.add_bias(y, name + "/BiasAdd", net.bias(name, options.channels));
  return net.relu(y, name);
}

Var normalize_response(Layers& net, Var x, const std::string& name) {
  // TensorFlow multiplies the sum by 1e-4; the op `lrn` divides alpha by the number of neighbours.
  return net.builder().call("lrn", {x},
                            {{"size", 5}, {"alpha", 5e-4}, {"beta", 0.75}, {"bias", 2.0}}, name);
}

Var classifier(Layers& net, Var x, std::int64_t classes) {
  x = net.flatten(x, "flatten");
  x = net.relu(net.linear(x, "fc6", kHidden, 2), "fc6/Relu");
  x = net.relu(net.linear(x, "fc7", kHidden, 2), "fc7/Relu");
  return net.linear(x, "fc8", classes);
}

Graph make_alexnet(const NetworkSettings& settings) {
  const bool is_tensorflow = settings.word("form", {"tf", "torch"}) == "tf";
  const bool has_lrn = settings.flag_or("lrn", is_tensorflow);
  const bool has_classifier = settings.flag_or("dense", !is_tensorflow);
  std::string layout = settings.word("layout", {"auto", "NCHW", "NHWC"});
  if (layout == "auto") layout = is_tensorflow ? "NHWC" : "NCHW";

  Layers net(settings, layout, {"/weights", "/biases"});
  const std::int64_t size = settings.number("size", 63, 1 << 14);
  // The benchmark stores its images in an unnamed variable.
  const std::string images = is_tensorflow ? "Variable" : "x";
  const bool is_fed = settings.word("images", {"input", "variable"}) == "input";
  Var x = is_fed ? net.image(images, settings.extent("batch"), 3, size)
                 : net.stored_image(images, settings.number("batch", 1, 1 << 20), 3, size);
  const ConvolutionSettings layers[] = {{.channels = 64, .kernel = 11, .stride = 4, .pad = 2},
                                        {.channels = 192, .kernel = 5, .pad = 2},
                                        {.channels = 384, .kernel = 3, .pad = 1},
                                        {.channels = 256, .kernel = 3, .pad = 1},
                                        {.channels = 256, .kernel = 3, .pad = 1}};
  for (int layer = 1; layer <= 5; ++layer) {
    x = conv_relu(net, x, concat("conv", layer), layers[layer - 1], is_tensorflow);
    if (layer <= 2 && has_lrn) x = normalize_response(net, x, concat("lrn", layer, "/LRN"));
    const bool is_pooled = layer <= 2 || layer == 5;
    if (is_pooled) x = net.max_pool(x, concat("pool", layer), {.kernel = 3, .stride = 2});
  }
  if (!has_classifier) {
    net.builder().output(x);
  } else {
    net.builder().output(classifier(net, x, settings.number("classes", 1, 1 << 20)), "logits");
  }
  return net.take();
}

}  // namespace

std::vector<Recipe> alexnet_recipes() {
  return {
      {{"alexnet", "classifier of five convolutions; by default those of TensorFlow's benchmark",
        with_common(
            {size_parameter("224"),
             classes_parameter("1000"),
             {"form", "tf", "tf: TensorFlow's benchmark; torch: as torchvision has it"},
             {"lrn", "auto", "local response normalization: 0 or 1; auto: in form tf"},
             {"dense", "auto", "dense layers at the end: 0 or 1; auto: in form torch"},
             {"images", "input", "input: given to each run; variable: kept, as the benchmark does"},
             {"layout", "auto", "layout of images: NCHW or NHWC; auto: NHWC in form tf"}})},
       make_alexnet}};
}

}  // namespace tenon::zoo
