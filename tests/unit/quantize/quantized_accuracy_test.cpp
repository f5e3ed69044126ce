#include "driver/compile.h"
#include "frontends/numpy/npz.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "quantize/quantizer.h"
#include "quantize/relay_pipeline.h"
#include "testing/random.h"
#include "train/options.h"
#include "train/trainer.h"
#include "unit/driver/order_transformer.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

// Accuracy loss of quantization on real tasks: networks trained here, in seconds, on generated
// data.
namespace tenon::quantized_accuracy_test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSide = 12, kShapes = 10;

// Returns whether the five by five figure has the pixel.
bool has_pixel(std::int64_t shape, std::int64_t i, std::int64_t j) {
  switch (shape) {
    case 0:
      return i == 2;
    case 1:
      return j == 2;
    case 2:
      return i == j;
    case 3:
      return i + j == 4;
    case 4:
      return i == 2 || j == 2;
    case 5:
      return i == j || i + j == 4;
    case 6:
      return i < 4 && j < 4;
    case 7:
      return i == 0 || i == 4 || j == 0 || j == 4;
    case 8:
      return j == 0 || i == 4;
    default:
      return i == 0 || j == 2;
  }
}

// Ten figures at random positions in noise.
struct Figures {
  Tensor images, target;

  Figures(std::int64_t count, std::uint64_t seed)
      : images(DType::F32, {count, 1, kSide, kSide}), target(DType::I64, {count}) {
    testing::Random random(seed);
    for (std::int64_t k = 0; k < count; ++k) {
      const auto shape = static_cast<std::int64_t>(random.below(kShapes));
      const std::int64_t top = random.between(0, kSide - 5), left = random.between(0, kSide - 5);
      for (std::int64_t i = 0; i < kSide; ++i) {
        for (std::int64_t j = 0; j < kSide; ++j) {
          const bool is_inside = i >= top && i < top + 5 && j >= left && j < left + 5;
          const bool is_set = is_inside && has_pixel(shape, i - top, j - left);
          images.set_real((k * kSide + i) * kSide + j,
                          (is_set ? 1.0 : 0.0) + 0.7 * (random.real() - 0.5));
        }
      }
      target.set_integer(k, shape);
    }
  }
};

constexpr const char* kCnn = R"(graph figures (x: f32[N, 1, 12, 12]) {
  conv1.w = constant f32[16, 1, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.4)
  conv1.b = constant f32[16] splat 0.0
  bn.scale = constant f32[16] splat 1.0
  bn.bias = constant f32[16] splat 0.0
  bn.mean = constant f32[16] splat 0.0
  bn.variance = constant f32[16] splat 1.0
  conv2.w = constant f32[24, 16, 3, 3] normal(seed = 2, mean = 0.0, deviation = 0.12)
  conv2.b = constant f32[24] splat 0.0
  conv3.w = constant f32[24, 24, 3, 3] normal(seed = 3, mean = 0.0, deviation = 0.1)
  conv3.b = constant f32[24] splat 0.0
  fc.w = constant f32[216, 10] normal(seed = 4, mean = 0.0, deviation = 0.1)
  fc.b = constant f32[10] splat 0.0
  c1 = conv(x, conv1.w, conv1.b) {pads = [1, 1, 1, 1]}
  n1 = batch_norm(c1, bn.scale, bn.bias, bn.mean, bn.variance)
  r1 = relu(n1)
  p1 = max_pool(r1) {kernel_shape = [2, 2], strides = [2, 2]}
  c2 = conv(p1, conv2.w, conv2.b) {pads = [1, 1, 1, 1]}
  r2 = relu(c2)
  c3 = conv(r2, conv3.w, conv3.b) {pads = [1, 1, 1, 1]}
  s3 = add(c3, r2)
  r3 = relu(s3)
  p3 = max_pool(r3) {kernel_shape = [2, 2], strides = [2, 2]}
  f = reshape(p3) {shape = [N, 216]}
  m = matmul(f, fc.w)
  logits = add(m, fc.b)
  return logits
}
)";

class QuantizedAccuracy : public ::testing::Test {
 protected:
  QuantizedAccuracy()
      : folder_(fs::path(::testing::TempDir()) /
                ("tenon_accuracy_" + std::to_string(getpid()) + "_" +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(folder_ / "samples");
  }
  ~QuantizedAccuracy() override { fs::remove_all(folder_); }

  Graph trained(const char* text, const std::string& input, const Tensor& x, const Tensor& target,
                std::int64_t epochs, const char* optimizer) {
    const std::string path = (folder_ / "data.npz").string();
    frontends::numpy::write_npz_file({{input, x}, {"target", target}}, path);
    train::TrainerOptions options;
    train::set_optimizer(options.train, optimizer);
    train::set_schedule(options.train.schedule, "cosine,warm_up=50");
    options.data = "@" + path;
    options.batch_size = 50;
    options.epochs = epochs;
    options.thread_count = 1;
    return train::Trainer(parse_graph(text, all_ops()), options).run().model;
  }

  void write_samples(const std::string& input, const std::vector<Tensor>& batches) {
    for (std::size_t k = 0; k < batches.size(); ++k)
      frontends::numpy::write_npz_file(
          {{input, batches[k]}}, (folder_ / "samples" / (std::to_string(k) + ".npz")).string());
  }
  std::string samples() const { return "@" + (folder_ / "samples").string(); }

  // Percentage of samples whose largest logit is the target.
  static double accuracy(const Graph& graph, const Tensor& x, const Tensor& target) {
    CompiledModel model(driver::compile_graph(graph), 2);
    const Tensor logits = model.run({Datum(x)}).front().tensor();
    const std::int64_t classes = logits.shape().back();
    std::int64_t right = 0;
    for (std::int64_t k = 0; k < target.size(); ++k) {
      std::int64_t best = 0;
      for (std::int64_t c = 1; c < classes; ++c)
        if (logits.real_at(k * classes + c) > logits.real_at(k * classes + best)) best = c;
      right += best == target.integer_at(k) ? 1 : 0;
    }
    return 100.0 * static_cast<double>(right) / static_cast<double>(target.size());
  }

  struct Row {
    const char* scheme;
    bool equalises;
    double most_lost;
  };
  // Compares every scheme's accuracy with the float network's; prints the table of the
  // documentation page.
  void compare(const Graph& model, const Tensor& x, const Tensor& target,
               const std::vector<Row>& rows, const std::vector<std::vector<std::string>>& relay,
               double relay_most_lost) {
    const double real = accuracy(model, x, target);
    std::printf("  %-40s %6.2f %%\n", "float", real);
    EXPECT_GT(real, 95);
    const Graph ready = quantize::ready_to_quantize(model);
    const quantize::CalibrationSamples calibration(ready, samples());
    for (const Row& row : rows) {
      quantize::QuantizeRequest request;
      request.scheme = row.scheme;
      request.equalises = row.equalises;
      const quantize::QuantizeResult made = quantize::quantize_model(ready, calibration, request);
      const double left = accuracy(made.graph, x, target);
      std::printf("  %-40s %6.2f %%  (%zu pairs equalised, %zu biases corrected)\n", row.scheme,
                  left, made.equalised, made.corrected);
      EXPECT_LE(real - left, row.most_lost) << row.scheme;
    }
    const quantize::CalibrationSamples plain(model, samples());
    for (const std::vector<std::string>& settings : relay) {
      quantize::RelayQuantizeRequest request;
      std::string name = "relay";
      for (const std::string& setting : settings) {
        passes::relay_quantize::set_field(request.config, setting);
        name += " " + setting;
      }
      const Graph made = quantize::relay_quantize_model(model, &plain, request).graph;
      const double left = accuracy(made, x, target);
      std::printf("  %-40s %6.2f %%\n", name.c_str(), left);
      EXPECT_LE(real - left, relay_most_lost) << name;
    }
  }

 private:
  fs::path folder_;
};

TEST_F(QuantizedAccuracy, ConvolutionalNetwork) {
  const Figures data(3000, 5), test(1000, 77);
  const Graph model = trained(kCnn, "x", data.images, data.target, 8, "adam,lr=4e-3");
  write_samples("x", {Figures(64, 901).images, Figures(64, 902).images, Figures(64, 903).images});
  compare(model, test.images, test.target,
          {{"int8", false, 0.5},
           {"int8", true, 0.5},
           {"int8-symmetric", false, 0.5},
           {"int8-7bit", false, 0.5},
           {"w8", false, 0.5},
           {"w4", false, 1.0}},
          {{"calibrate_mode=percentile"},
           {"calibrate_mode=kl_divergence", "weight_scale=max"},
           {"global_scale=8", "skip_conv_layers=none"}},
          5);
}

TEST_F(QuantizedAccuracy, Transformer) {
  const OrderedTokens data(3000, 3), test(1000, 77);
  const Graph model =
      trained(kOrderTransformer, "tokens", data.tokens, data.target, 8, "adam,lr=3e-3,clip=1");
  write_samples("tokens", {OrderedTokens(64, 901).tokens, OrderedTokens(64, 902).tokens});
  compare(model, test.tokens, test.target,
          {{"int8", false, 0.5},
           {"int8-symmetric", false, 0.5},
           {"w8", false, 0.5},
           {"w4", false, 1.0}},
          {{"calibrate_mode=percentile", "skip_dense_layer=false"}}, 5);
}

}  // namespace
}  // namespace tenon::quantized_accuracy_test
